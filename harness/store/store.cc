// SPDX-License-Identifier: Apache-2.0
// The runs and devices of a store. store_open.cc opens it, store_results.cc has its results.
#include "harness/store/store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/base/hash.h"
#include "harness/base/text.h"
#include "harness/store/level_walk.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

std::string now_utc() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// 32 hex digits that no other store has.
std::string random_id(Database& db) {
  Statement q(db, "SELECT lower(hex(randomblob(16)))");
  q.step();
  return q.text(0);
}

std::string list_runs(Database& db) {
  Statement q(db, "SELECT run_id, label, status FROM run ORDER BY run_id DESC LIMIT 10");
  std::string list;
  while (q.step()) {
    list +=
        fmt::format("{}{} '{}' ({})", list.empty() ? "" : ", ", q.integer(0), q.text(1), q.text(2));
  }
  return list.empty() ? "none; `moegate run` makes one" : list;
}

/// A label that is close to what was typed.
std::string meant_label(Database& db, const std::string& typed) {
  std::vector<std::string> known = {"latest"};
  Statement q(db, "SELECT DISTINCT label FROM run");
  while (q.step()) known.push_back(q.text(0));
  return did_you_mean(typed, known);
}

}  // namespace

int64_t Store::device_id(const DeviceFacts& d) {
  const auto find = [&] {
    Statement q(db_, "SELECT device_id FROM device WHERE uuid = ?1 AND class = ?2 AND driver = ?3");
    return q.bind(d.uuid, d.klass, d.driver).step() ? q.integer(0) : 0;
  };
  if (find() == 0) insert_row(db_, "device", d);
  return find();
}

int64_t Store::begin_run(RunInfo info) {
  Transaction transaction(db_);
  info.started = now_utc();
  info.finished.clear();
  info.status = "running";
  if (info.uuid.empty()) info.uuid = random_id(db_);
  if (info.campaign.empty()) info.campaign = info.uuid;
  insert_row(db_, "run", info, std::pair("device_id", device_id(info.device)));
  const int64_t run = db_.last_id();
  if (info.shards > 0) {
    Statement(db_,
              "INSERT INTO campaign (uuid, created, label, shards) VALUES (?1, ?2, ?3, ?4) "
              "ON CONFLICT DO NOTHING")
        .bind(info.campaign, info.started, info.label, info.shards)
        .run();
  }
  for (const auto& [name, value] : info.tags) {
    Statement(db_, "INSERT INTO tag (run_id, name, value) VALUES (?1, ?2, ?3)")
        .bind(run, name, value)
        .run();
  }
  for (const OperatorFacts& op : info.operators) {
    insert_row(db_, "operator", op, std::pair("run_id", run));
    for (size_t rank = 0; rank < op.before.size(); ++rank) {
      insert_row(db_, "before", op.before[rank], std::pair("run_id", run), std::pair("op", op.name),
                 std::pair("rank", static_cast<int64_t>(rank)));
    }
  }
  transaction.commit();
  return run;
}

int64_t Store::begin_process(int64_t run, int round, int pid) {
  Statement(db_,
            "INSERT INTO process (run_id, round, pid, started, uuid, shard) "
            "VALUES (?1, ?2, ?3, ?4, ?5, (SELECT shard FROM run WHERE run_id = ?1))")
      .bind(run, round, pid, now_utc(), random_id(db_))
      .run();
  return db_.last_id();
}

void Store::end_process(int64_t process, const std::string& throttle) {
  Statement(db_, "UPDATE process SET throttle = ?2 WHERE process_id = ?1")
      .bind(process, throttle)
      .run();
}

void Store::set_environment(int64_t process, const EnvironmentItems& environment) {
  if (environment.empty()) return;
  std::string all;
  for (const EnvironmentItem& item : environment) {
    for (const std::string* text : {&item.kind, &item.name, &item.value, &item.digest}) {
      all.append(text->c_str(), text->size() + 1);
    }
    all += item.counts ? '1' : '0';
  }
  const std::string digest = sha256(all);
  Transaction transaction(db_);
  Statement find(db_, "SELECT environment_id FROM environment WHERE digest = ?1");
  int64_t id = find.bind(digest).step() ? find.integer(0) : 0;
  find.reset();
  if (id == 0) {
    Statement(db_, "INSERT INTO environment (digest, hash) VALUES (?1, ?2)")
        .bind(digest, hash_of(environment))
        .run();
    id = db_.last_id();
    for (const EnvironmentItem& item : environment) {
      insert_row(db_, "environment_item", item, std::pair("environment_id", id));
    }
  }
  Statement(db_, "UPDATE process SET environment_id = ?2 WHERE process_id = ?1")
      .bind(process, id)
      .run();
  transaction.commit();
}

EnvironmentItems Store::environment(int64_t run) {
  Statement q(db_, fmt::format("SELECT DISTINCT {} FROM process JOIN environment_item i USING "
                               "(environment_id) WHERE run_id = ?1",
                               columns_of<EnvironmentItem>("i")));
  q.bind(run);
  const Columns columns(q);
  std::vector<EnvironmentItem> items;
  while (q.step()) items.push_back(columns.row<EnvironmentItem>());
  return in_order(std::move(items));
}

void Store::end_run(int64_t run, const std::string& status) {
  Transaction transaction(db_);
  Statement(
      db_,
      "UPDATE run SET status = ?2, finished = ?3, rounds = (SELECT count(DISTINCT round) FROM "
      "process WHERE process.run_id = run.run_id) WHERE run_id = ?1")
      .bind(run, status, now_utc())
      .run();
  analyze(db_);  // the planner then knows how few of the rows belong to one run
  transaction.commit();
}

int64_t Store::find_resumable(const std::string& which) {
  if (which == "latest") {
    Statement q(
        db_,
        fmt::format("SELECT run_id FROM run WHERE status <> 'complete' AND task = 'measure' AND {} "
                    "AND run_id NOT IN (SELECT run_id FROM shard) ORDER BY run_id DESC LIMIT 1",
                    kOfItsOwn));
    if (q.step()) return q.integer(0);
    usage_error("--resume latest: every run of {} is complete; its runs: {}", db_.path(),
                list_runs(db_));
  }
  const int64_t id = find_run(which);
  const RunInfo run = run_info(id);
  if (run.tags.contains("ab")) {
    usage_error(
        "--resume {}: run {} is a side of a comparison, whose rounds cannot be resumed; "
        "compare again",
        which, id);
  }
  if (run.task != "measure") {
    usage_error("--resume {}: run {} is a profile ({}) and cannot be resumed; profile again", which,
                id, run.task);
  }
  if (is_merged(run)) {
    usage_error("--resume {}: run {} was merged from shards; run the absent shards themselves",
                which, id);
  }
  if (run.status == "complete") {
    usage_error("--resume {}: run {} is complete; start a new one without --resume", which, id);
  }
  return id;
}

int64_t Store::find_run(const std::string& which, const std::string& task) {
  if (which == "latest") {
    Statement q(db_, fmt::format("SELECT run_id FROM run WHERE status <> 'running' AND "
                                 "task = ?1 AND {} ORDER BY started DESC, run_id DESC LIMIT 1",
                                 kOfItsOwn));
    if (q.bind(task).step()) return q.integer(0);
    usage_error("{}: no finished run {}; its runs: {}", db_.path(),
                task == "measure" ? "that measures latency" : "of `moegate profile` with " + task,
                list_runs(db_));
  }
  // A number is an id; a label may be a number too, so an id that does not exist is tried as one.
  const bool number =
      !which.empty() && which.size() < 19 &&
      std::all_of(which.begin(), which.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (number) {
    Statement q(db_, "SELECT run_id FROM run WHERE run_id = ?1");
    if (q.bind(int64_t{std::stoll(which)}).step()) return q.integer(0);
  }
  Statement q(db_, "SELECT run_id FROM run WHERE label = ?1 ORDER BY run_id DESC LIMIT 1");
  if (q.bind(which).step()) return q.integer(0);
  usage_error("{}: no run '{}'{} (latest, a number or a label); its runs: {}", db_.path(), which,
              meant_label(db_, which), list_runs(db_));
}

int64_t Store::find_shard(const std::string& campaign, int shard) {
  Statement q(db_,
              "SELECT run_id FROM run WHERE campaign = ?1 AND shard = ?2 "
              "ORDER BY status = 'complete' DESC, run_id DESC LIMIT 1");
  return q.bind(campaign, shard).step() ? q.integer(0) : 0;
}

std::vector<int> Store::absent_shards(const RunInfo& run) {
  std::vector<int> absent;
  if (!is_merged(run)) return absent;
  Statement q(db_, "SELECT shard FROM shard WHERE run_id = ?1 ORDER BY shard");
  q.bind(run.id);
  int next = 1;
  while (q.step()) {
    for (; next < q.integer(0); ++next) absent.push_back(next);
    ++next;
  }
  for (; next <= run.shards; ++next) absent.push_back(next);
  return absent;
}

std::vector<OperatorFacts> Store::operators(int64_t run) {
  std::vector<OperatorFacts> all;
  std::map<std::string, size_t> index;
  Statement q(db_, fmt::format("SELECT {} FROM operator o WHERE run_id = ?1 ORDER BY op",
                               columns_of<OperatorFacts>("o")));
  q.bind(run);
  const Columns columns(q);
  while (q.step()) {
    index[columns.text("op")] = all.size();
    all.push_back(columns.row<OperatorFacts>());
  }
  Statement b(db_, fmt::format("SELECT op, {} FROM before b WHERE run_id = ?1 ORDER BY op, rank",
                               columns_of<Before>("b")));
  b.bind(run);
  const Columns of_before(b);
  while (b.step()) {
    const auto op = index.find(of_before.text("op"));
    if (op == index.end()) db_.damaged("a before of no operator");
    all[op->second].before.push_back(of_before.row<Before>());
  }
  return all;
}

RunInfo Store::run_info(int64_t run) {
  Statement q(db_, fmt::format("SELECT device_id, {} FROM run WHERE run_id = ?1",
                               columns_of<RunInfo>("run")));
  if (!q.bind(run).step()) usage_error("{}: no run {}", db_.path(), run);
  const Columns columns(q);
  auto info = columns.row<RunInfo>();
  info.id = run;
  Statement device(db_, fmt::format("SELECT {} FROM device WHERE device_id = ?1",
                                    columns_of<DeviceFacts>("device")));
  if (!device.bind(columns.integer("device_id")).step()) db_.damaged("a run of no device");
  info.device = Columns(device).row<DeviceFacts>();
  check_file_name(db_, "the device class", info.device.klass);
  if (!info.program.empty()) check_file_name(db_, "the program", info.program);
  if (!info.git_sha.empty()) check_file_name(db_, "the commit", info.git_sha);
  info.operators = operators(run);
  Statement campaign(db_, "SELECT shards FROM campaign WHERE uuid = ?1");
  if (campaign.bind(info.campaign).step()) info.shards = static_cast<int>(campaign.integer(0));
  Statement tags(db_, "SELECT name, value FROM tag WHERE run_id = ?1");
  tags.bind(run);
  while (tags.step()) info.tags[tags.text(0)] = tags.text(1);
  return info;
}

void Store::check_intact(int64_t most) {
  const int64_t bytes = db_.integer("PRAGMA page_count") * db_.integer("PRAGMA page_size");
  if (bytes > most) return;
  // Not samples and launches, which no verdict reads.
  for (const char* table :
       {"run", "device", "tag", "process", "bench_case", "run_case", "result", "verification",
        "verified_output", "verified_seed", "metric_name", "metric_value"}) {
    Statement q(db_, fmt::format("PRAGMA quick_check({})", table));
    while (q.step()) {
      if (q.text(0) != "ok") db_.damaged(fmt::format("table {}: {}", table, q.text(0)));
    }
  }
}

double Store::seconds_per_result(const DeviceFacts& device, double budget_s) {
  // The quickest: one that was resumed a day later took a day.
  Statement q(
      db_,
      "WITH newest AS (SELECT run_id, started, finished FROM run JOIN device USING "
      "(device_id) WHERE device.uuid = ?1 AND class = ?2 AND driver = ?3 AND status = 'complete' "
      "AND task = 'measure' AND json_extract(options, '$.budget_s') = ?5 ORDER BY run_id DESC "
      "LIMIT 5), counted "
      "AS (SELECT *, (SELECT "
      "sum(results) FROM process WHERE process.run_id = newest.run_id) AS n, ifnull((SELECT "
      "length(value) - length(replace(value, '=', '')) FROM tag WHERE tag.run_id = newest.run_id "
      "AND "
      "tag.name = ?4), 1) AS gpus FROM newest) SELECT ifnull(min((julianday(finished) - "
      "julianday(started)) * 86400 * gpus / n), 0) FROM counted WHERE n >= 20");
  q.bind(device.uuid, device.klass, device.driver, kGpusTag, budget_s).step();
  return std::round(q.real(0) * 1000) / 1000;
}

void Store::set_ceilings(const DeviceFacts& device, const std::map<std::string, double>& ceilings) {
  Transaction transaction(db_);
  const int64_t id = device_id(device);
  for (const auto& [name, value] : ceilings) {
    Statement(db_,
              "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) "
              "ON CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, "
              "measured = excluded.measured")
        .bind(id, name, value, now_utc())
        .run();
  }
  transaction.commit();
}

std::map<std::string, double> Store::ceilings(const DeviceFacts& device) {
  Statement q(db_,
              "SELECT c.name, value FROM ceiling c JOIN device USING (device_id) "
              "WHERE uuid = ?1 AND class = ?2 AND driver = ?3");
  q.bind(device.uuid, device.klass, device.driver);
  std::map<std::string, double> found;
  while (q.step()) found[q.text(0)] = q.real(1);
  return found;
}

}  // namespace moegate
