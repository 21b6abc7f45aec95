// SPDX-License-Identifier: Apache-2.0
// What a store says of its runs and their results to those who resume, judge and report. A run may
// have 10^5 results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/base/text.h"
#include "harness/store/level_walk.h"
#include "harness/store/result_checksum.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

std::string list_runs(Database& db) {
  const auto list = values_of<std::string>(
      db,
      "SELECT run_id || ' ''' || label || ''' (' || status || ')' FROM run ORDER BY run_id DESC "
      "LIMIT 10");
  return list.empty() ? "none; `moegate run` makes one" : fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

int64_t Store::find_resumable(const std::string& which) {
  if (which == "latest") {
    const int64_t newest = db_.integer(
        fmt::format("SELECT run_id FROM run WHERE status <> 'complete' AND task = 'measure' AND {} "
                    "AND run_id NOT IN (SELECT run_id FROM shard) ORDER BY run_id DESC LIMIT 1",
                    kOfItsOwn));
    if (newest != 0) return newest;
    usage_error("--resume latest: every run of {} is complete; its runs: {}", db_.path(),
                list_runs(db_));
  }
  const int64_t id = find_run(which);
  const RunInfo run = run_info(id);
  std::string why;
  if (run.tags.contains("ab")) {
    why =
        "is a side of an A/B, whose rounds cannot be resumed; compare again, or judge what there "
        "is: `moegate gate --against BASE --run HEAD`";
  } else if (run.task != "measure") {
    why = fmt::format("is a profile ({}) and cannot be resumed; profile again", run.task);
  } else if (is_merged(run)) {
    why = "was merged from shards; run the absent shards themselves";
  } else if (run.status == "complete") {
    why = "is complete; start a new one without --resume";
  }
  if (!why.empty()) usage_error("--resume {}: run {} {}", which, id, why);
  return id;
}

bool Store::takes(const std::string& task) {
  return db_.integer("SELECT instr(sql, ?1) FROM sqlite_schema WHERE name = 'run'",
                     "'" + task + "'") > 0;
}

int64_t Store::find_run(const std::string& which, const std::string& task) {
  if (which == "latest") {
    const int64_t newest =
        db_.integer(fmt::format("SELECT run_id FROM run WHERE status <> 'running' AND "
                                "instr(' ' || ?1 || ' ', ' ' || task || ' ') > 0 "
                                "AND {} ORDER BY started DESC, run_id DESC LIMIT 1",
                                kOfItsOwn),
                    task);
    if (newest != 0) return newest;
    usage_error("{}: no finished run {}; its runs: {}", db_.path(),
                task.starts_with("measure")
                    ? "that measures latency (a side of an A/B is meant by its number)"
                    : "of `moegate profile` with " + task,
                list_runs(db_));
  }
  // A number is an id; a label may be a number too, so an id that does not exist is tried as one.
  const int64_t found = db_.integer(
      "SELECT run_id FROM run WHERE run_id = ?1 OR label = ?2 ORDER BY run_id = ?1 DESC, run_id "
      "DESC LIMIT 1",
      parse_number<int64_t>(which).value_or(0), which);
  if (found != 0) return found;
  const auto known =
      values_of<std::string>(db_, "SELECT 'latest' UNION ALL SELECT DISTINCT label FROM run");
  usage_error("{}: no run '{}'{} (latest, a number or a label); its runs: {}", db_.path(), which,
              did_you_mean(which, known), list_runs(db_));
}

int64_t Store::find_shard(const std::string& campaign, int shard) {
  return db_.integer(
      "SELECT run_id FROM run WHERE campaign = ?1 AND shard = ?2 "
      "ORDER BY status = 'complete' DESC, run_id DESC LIMIT 1",
      campaign, shard);
}

std::vector<int> Store::absent_shards(const RunInfo& run) {
  if (!is_merged(run)) return {};
  return values_of<int>(
      db_,
      "WITH RECURSIVE every(shard) AS (SELECT 1 UNION ALL SELECT shard + 1 FROM every WHERE shard "
      "< ?2) SELECT shard FROM every EXCEPT SELECT shard FROM shard WHERE run_id = ?1 ORDER BY 1",
      run.id, run.shards);
}

std::vector<OperatorFacts> Store::operators(int64_t run) {
  auto all =
      all_rows<OperatorFacts>(db_,
                              fmt::format("SELECT {} FROM operator o WHERE run_id = ?1 ORDER BY op",
                                          columns_of<OperatorFacts>("o")),
                              run);
  Statement q(db_, fmt::format("SELECT op, {} FROM before b WHERE run_id = ?1 ORDER BY op, rank",
                               columns_of<Before>("b")));
  q.bind(run);
  const RowReader<Before> before(q);
  while (q.step()) {
    const auto op = std::ranges::find(all, q.text(0), &OperatorFacts::name);
    if (op == all.end()) db_.damaged("a before of no operator");
    op->before.push_back(before.read());
  }
  return all;
}

RunInfo Store::run_info(int64_t run) {
  Statement q(db_, fmt::format("SELECT device_id, {} FROM run WHERE run_id = ?1",
                               columns_of<RunInfo>("run")));
  if (!q.bind(run).step()) usage_error("{}: no run {}", db_.path(), run);
  auto info = RowReader<RunInfo>(q).read();
  info.id = run;
  Statement device(db_, fmt::format("SELECT {} FROM device WHERE device_id = ?1",
                                    columns_of<DeviceFacts>("device")));
  if (!device.bind(q.integer(0)).step()) db_.damaged("a run of no device");
  info.device = RowReader<DeviceFacts>(device).read();
  check_file_name(db_, "the device class", info.device.klass);
  if (!info.program.empty()) check_file_name(db_, "the program", info.program);
  if (!info.git_sha.empty()) check_file_name(db_, "the commit", info.git_sha);
  info.operators = operators(run);
  info.shards =
      static_cast<int>(db_.integer("SELECT shards FROM campaign WHERE uuid = ?1", info.campaign));
  Statement tags(db_, "SELECT name, value FROM tag WHERE run_id = ?1");
  tags.bind(run);
  while (tags.step()) info.tags[tags.text(0)] = tags.text(1);
  return info;
}

void Store::check_intact(int64_t most) {
  if (db_.bytes_of("page_count") > most) return;
  // Not samples and launches, which no verdict reads.
  for (const char* table :
       {"run", "device", "tag", "process", "bench_case", "run_case", "result", "verification",
        "verified_output", "verified_seed", "metric_name", "metric_value"}) {
    db_.check(table);
  }
}

double Store::seconds_per_result(const DeviceFacts& device, double budget_s) {
  // The quickest: one that was resumed a day later took a day.
  Statement q(db_,
              "WITH newest AS (SELECT run_id, started, finished FROM run JOIN device USING "
              "(device_id) WHERE device.uuid = ?1 AND class = ?2 AND driver = ?3 AND status = "
              "'complete' AND task = 'measure' AND json_extract(options, '$.budget_s') = ?5 ORDER "
              "BY run_id DESC LIMIT 5), counted AS (SELECT *, (SELECT sum(results) FROM process "
              "WHERE process.run_id = newest.run_id) AS n, ifnull((SELECT length(value) - "
              "length(replace(value, '=', '')) FROM tag WHERE tag.run_id = newest.run_id AND "
              "tag.name = ?4), 1) AS gpus FROM newest) SELECT ifnull(min((julianday(finished) - "
              "julianday(started)) * 86400 * gpus / n), 0) FROM counted WHERE n >= 20");
  q.bind(device.uuid, device.klass, device.driver, kGpusTag, budget_s).step();
  return std::round(q.real(0) * 1000) / 1000;
}

EnvironmentItems Store::environment(int64_t run) {
  return in_order(all_rows<EnvironmentItem>(
      db_,
      fmt::format("SELECT DISTINCT {} FROM process JOIN environment_item i USING "
                  "(environment_id) WHERE run_id = ?1",
                  columns_of<EnvironmentItem>("i")),
      run));
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

std::set<std::tuple<int, std::string, std::string>> Store::done(int64_t run) {
  Statement q(db_,
              "SELECT round, key, variant FROM process CROSS JOIN result USING (process_id) "
              "JOIN bench_case USING (case_id) WHERE run_id = ?1");
  q.bind(run);
  std::set<std::tuple<int, std::string, std::string>> rows;
  while (q.step()) rows.emplace(static_cast<int>(q.integer(0)), q.text(1), q.text(2));
  return rows;
}

std::map<std::string, int> Store::gpus_of_cases(int64_t run) {
  Statement q(db_,
              "SELECT DISTINCT key, CAST(value AS INTEGER) FROM process CROSS JOIN result USING "
              "(process_id) JOIN bench_case USING (case_id) JOIN metric USING (result_id) WHERE "
              "run_id = ?1 AND metric.name = ?2 AND ordinal = -1");
  q.bind(run, kGpuMetric);
  std::map<std::string, int> gpus;
  while (q.step()) gpus[q.text(0)] = static_cast<int>(q.integer(1));
  return gpus;
}

std::vector<Level> Store::levels(int64_t run, bool launches) {
  Transaction reading(db_, "BEGIN");  // the statements of one state, whoever writes
  ResultParts parts(db_);
  std::vector<std::vector<Level>> by_case;  // by key: a walk is by number
  walk_levels(db_, {.run = run}, [&](const WalkedLevel& one) {
    if (by_case.size() <= one.place) by_case.resize(one.place + 1);
    Result& result = by_case[one.place].emplace_back(one.level).result;
    parts.read_metrics(one.result_id, result);
    if (!launches) return;
    parts.launches.read(one.result_id, result.kernels);
    parts.stalls.read(one.result_id, result.stalls);
  });
  std::vector<Level> all;
  for (auto& levels : by_case) std::ranges::move(levels, std::back_inserter(all));
  return all;
}

void Store::check_results(int64_t run) {
  each_level(run)([](const Level&) {});
}

EachLevel Store::each_level(int64_t run) {
  return [this, run](const std::function<void(const Level&)>& add) {
    Transaction reading(db_, "BEGIN");
    walk_levels(db_, {.run = run, .for_verdict = true},
                [&](const WalkedLevel& one) { add(one.level); });
  };
}

}  // namespace moegate
