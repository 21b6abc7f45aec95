// SPDX-License-Identifier: Apache-2.0
// What a run writes into a store. store_open.cc opens it, store_reads.cc reads it.
#include "harness/store/store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "harness/base/hash.h"
#include "harness/store/packed_spans.h"
#include "harness/store/result_checksum.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

std::string now_utc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// 32 hex digits that no other store has.
std::string random_id(Database& db) {
  return values_of<std::string>(db, "SELECT lower(hex(randomblob(16)))").front();
}

int64_t upsert_case(Database& db, const Case& c, const Cost& cost) {
  // The key identifies a case; an operator's new parameter with a default, or a corrected cost,
  // updates what is said about it. A row whose process died knows no cost.
  db.run(
      "INSERT INTO bench_case (key, op, params, flops, read_bytes, write_bytes) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE SET "
      "params = excluded.params, flops = excluded.flops, read_bytes = excluded.read_bytes, "
      "write_bytes = excluded.write_bytes "
      "WHERE excluded.flops + excluded.read_bytes + excluded.write_bytes > 0",
      c.key(), c.op, nlohmann::json(c.params).dump(), cost.flops, cost.read_bytes,
      cost.write_bytes);
  return db.integer("SELECT case_id FROM bench_case WHERE key = ?1", c.key());
}

void upsert_run_case(Database& db, int64_t process, int64_t case_id, const Case& c,
                     const std::vector<Fact>& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const Fact& f : facts) json[f.name] = f.value;
  // A row whose process died knows no facts; it must not erase those known.
  db.run(
      "INSERT INTO run_case (run_id, case_id, suite, section, facts) "
      "SELECT run_id, ?2, ?3, ?4, ?5 FROM process WHERE process_id = ?1 "
      "ON CONFLICT (run_id, case_id) DO UPDATE SET facts = excluded.facts "
      "WHERE excluded.facts <> '{}'",
      process, case_id, c.suite, c.section, json.dump());
}

/// Every field of every row as text; doubles bit by bit.
template <class T>
void add_to_digest(std::string& text, const std::vector<T>& rows) {
  for (const T& row : rows) {
    for_each_field(kFields<T>, [&](const auto& f) {
      const auto& value = f.of(row);
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
        text += fmt::format("{}:{}|", value.size(), value);
      } else if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>) {
        text += fmt::format("{:a}|", value);
      } else {
        text += fmt::format("{}|", value);
      }
    });
    text += '\n';
  }
  text += '\f';
}

/// The number of what verifying found, 0 for nothing; most results find what was found before.
int64_t upsert_verification(Database& db, const Result& r) {
  if (r.accuracy.empty() && r.seeds.empty()) return 0;
  constexpr size_t kDigits = 32;  // 128 bits
  std::string text;
  add_to_digest(text, r.accuracy);
  add_to_digest(text, r.seeds);
  const std::string digest = sha256(text).substr(0, kDigits);
  const int64_t known =
      db.integer("SELECT verification_id FROM verification WHERE digest = ?1", digest);
  if (known != 0) return known;
  db.run("INSERT INTO verification (digest) VALUES (?1)", digest);
  const std::pair of("verification_id", db.last_id());
  for (const Accuracy& a : r.accuracy) insert_row(db, "verified_output", a, of);
  for (const SeedError& s : r.seeds) insert_row(db, "verified_seed", s, of);
  return of.second;
}

void insert_parts(Database& db, int64_t result, const Result& r) {
  const std::pair of("result_id", result);
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    insert_row(db, "kernel", r.kernels[i], of, std::pair("ordinal", static_cast<int64_t>(i)));
  }
  for (const Metric& m : r.metrics) insert_row(db, "metric", m, of);
  for (const StallRow& s : r.stalls) insert_row(db, "stall", s, of);
  if (!r.spans_ns.empty()) {
    const PackedSpans packed = pack_spans(r.spans_ns);
    db.run("INSERT INTO main.sample (result_id, spans, packing) VALUES (?1, ?2, ?3)", result,
           std::span(packed.bytes), static_cast<int>(packed.packing));
  }
}

/// Changes status, reason or suspicion of results of a case and variant. What is damaged stays so:
/// its checksum is not made anew.
void change_results(Database& db, const char* of, int64_t id, const std::string& key,
                    const std::string& variant, const std::function<void(Result&)>& change) {
  Transaction transaction(db);
  Statement q(db,
              fmt::format("SELECT result_id, checksum, {} FROM result r WHERE {} AND r.variant = "
                          "?3 AND case_id = (SELECT case_id FROM bench_case WHERE key = ?2)",
                          columns_of<Result>("r"), of));
  const uint64_t hash = hash_of_key(key);
  const RowReader<Result> row(q);
  struct Changed {
    int64_t id, checksum;
    Result result;
  };
  std::vector<Changed> all;  // nothing is written while it is read
  for (q.bind(id, key, variant); q.step();) {
    all.push_back({q.integer(0), q.integer(1), row.read()});
    Changed& one = all.back();
    const bool is_whole = one.checksum == checksum_of_numbers(one.result, hash);
    change(one.result);
    if (is_whole) one.checksum = checksum_of_numbers(one.result, hash);
  }
  Statement update(db,
                   "UPDATE result SET status = ?2, why = ?3, suspect_warm = ?4, checksum = ?5 "
                   "WHERE result_id = ?1");
  for (const auto& [result, checksum, r] : all) {
    update.bind(result, name_of(r.status), r.why, r.suspect_warm, checksum).run();
  }
  transaction.commit();
}

int64_t bytes_in_use(Database& db) {
  return (db.integer("PRAGMA page_count") - db.integer("PRAGMA freelist_count")) *
         db.integer("PRAGMA page_size");
}

}  // namespace

int64_t Store::device_id(const DeviceFacts& d) {
  const int64_t known =
      db_.integer("SELECT device_id FROM device WHERE uuid = ?1 AND class = ?2 AND driver = ?3",
                  d.uuid, d.klass, d.driver);
  if (known != 0) return known;
  insert_row(db_, "device", d);
  return db_.last_id();
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
    db_.run(
        "INSERT INTO campaign (uuid, created, label, shards) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT DO NOTHING",
        info.campaign, info.started, info.label, info.shards);
  }
  for (const auto& [name, value] : info.tags) {
    db_.run("INSERT INTO tag (run_id, name, value) VALUES (?1, ?2, ?3)", run, name, value);
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
  db_.run(
      "INSERT INTO process (run_id, round, pid, started, uuid, shard) "
      "VALUES (?1, ?2, ?3, ?4, ?5, (SELECT shard FROM run WHERE run_id = ?1))",
      run, round, pid, now_utc(), random_id(db_));
  return db_.last_id();
}

void Store::end_process(int64_t process, const std::string& throttle) {
  db_.run("UPDATE process SET throttle = ?2 WHERE process_id = ?1", process, throttle);
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
  int64_t id = db_.integer("SELECT environment_id FROM environment WHERE digest = ?1", digest);
  if (id == 0) {
    db_.run("INSERT INTO environment (digest, hash) VALUES (?1, ?2)", digest, hash_of(environment));
    id = db_.last_id();
    for (const EnvironmentItem& item : environment) {
      insert_row(db_, "environment_item", item, std::pair("environment_id", id));
    }
  }
  db_.run("UPDATE process SET environment_id = ?2 WHERE process_id = ?1", process, id);
  transaction.commit();
}

void Store::end_run(int64_t run, const std::string& status) {
  Transaction transaction(db_);
  db_.run(
      "UPDATE run SET status = ?2, finished = ?3, rounds = (SELECT count(DISTINCT round) FROM "
      "process WHERE process.run_id = run.run_id) WHERE run_id = ?1",
      run, status, now_utc());
  analyze(db_);  // the planner then knows how few of the rows belong to one run
  transaction.commit();
}

void Store::add_result(int64_t process, const Case& c, const Cost& cost,
                       const std::vector<Fact>& facts, const Result& result) {
  Transaction transaction(db_);
  const int64_t before = bytes_in_use(db_);
  const int64_t case_id = upsert_case(db_, c, cost);
  upsert_run_case(db_, process, case_id, c, facts);
  insert_row(db_, "result", result, std::pair("process_id", process), std::pair("case_id", case_id),
             std::pair("verification_id", upsert_verification(db_, result)),
             std::pair("checksum", checksum_of_numbers(result, hash_of_key(c.key()))),
             std::pair("verified_checksum", checksum_of_verified(result)));
  insert_parts(db_, db_.last_id(), result);
  db_.run(
      "UPDATE process SET results = results + 1, wall_s = wall_s + ?3, bytes = bytes + ?2 "
      "WHERE process_id = ?1",
      process, bytes_in_use(db_) - before, result.wall_s);
  transaction.commit();
}

void Store::mark_suspect_warm(int64_t run, const std::string& key, const std::string& variant) {
  change_results(db_, "process_id IN (SELECT process_id FROM process WHERE run_id = ?1)", run, key,
                 variant, [](Result& r) { r.suspect_warm = true; });
}

void Store::mark_crashed(int64_t process, const std::string& key, const std::string& variant,
                         const std::string& why) {
  change_results(db_, "process_id = ?1", process, key, variant, [&](Result& r) {
    r.status = Status::crashed;
    r.why = why;
  });
}

void Store::set_ceilings(const DeviceFacts& device, const std::map<std::string, double>& ceilings) {
  Transaction transaction(db_);
  const int64_t id = device_id(device);
  for (const auto& [name, value] : ceilings) {
    db_.run(
        "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, "
        "measured = excluded.measured",
        id, name, value, now_utc());
  }
  transaction.commit();
}

}  // namespace moegate
