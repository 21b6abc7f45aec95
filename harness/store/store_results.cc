// SPDX-License-Identifier: Apache-2.0
// This file has the results of a run in the store: as a run writes them, and as the gate and the
// reports read them. A run may have 10^5 of them.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <unordered_map>
#include <utility>

#include "harness/base/hash.h"
#include "harness/store/level_walk.h"
#include "harness/store/packed_spans.h"
#include "harness/store/result_checksum.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

int64_t upsert_case(Database& db, const Case& c, const Cost& cost) {
  // The key identifies a case; an operator's new parameter with a default, or a corrected cost,
  // updates what is said about it. A row whose process died knows no cost.
  Statement(db,
            "INSERT INTO bench_case (key, op, params, flops, read_bytes, write_bytes) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE SET "
            "params = excluded.params, flops = excluded.flops, read_bytes = excluded.read_bytes, "
            "write_bytes = excluded.write_bytes "
            "WHERE excluded.flops + excluded.read_bytes + excluded.write_bytes > 0")
      .bind(c.key(), c.op, nlohmann::json(c.params).dump(), cost.flops, cost.read_bytes,
            cost.write_bytes)
      .run();
  Statement q(db, "SELECT case_id FROM bench_case WHERE key = ?1");
  q.bind(c.key()).step();
  return q.integer(0);
}

void upsert_run_case(Database& db, int64_t process, int64_t case_id, const Case& c,
                     const std::vector<Fact>& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const Fact& f : facts) json[f.name] = f.value;
  // A row whose process died knows no facts; it must not erase those known.
  Statement(db,
            "INSERT INTO run_case (run_id, case_id, suite, section, facts) "
            "SELECT run_id, ?2, ?3, ?4, ?5 FROM process WHERE process_id = ?1 "
            "ON CONFLICT (run_id, case_id) DO UPDATE SET facts = excluded.facts "
            "WHERE excluded.facts <> '{}'")
      .bind(process, case_id, c.suite, c.section, json.dump())
      .run();
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
  Statement known(db, "SELECT verification_id FROM verification WHERE digest = ?1");
  if (known.bind(digest).step()) return known.integer(0);
  Statement(db, "INSERT INTO verification (digest) VALUES (?1)").bind(digest).run();
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
    Statement(db, "INSERT INTO main.sample (result_id, spans, packing) VALUES (?1, ?2, ?3)")
        .bind(result, std::span(packed.bytes), static_cast<int>(packed.packing))
        .run();
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
  Statement(db_,
            "UPDATE process SET results = results + 1, wall_s = wall_s + ?3, bytes = bytes + ?2 "
            "WHERE process_id = ?1")
      .bind(process, bytes_in_use(db_) - before, result.wall_s)
      .run();
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

// The results of a run, read for the gate and the reports. A run may have 10^5 of them.

namespace {

/// Calls `add` with every row that a run has in a table of parts of results, and the result's id.
template <class T>
void read_parts(Database& db, int64_t run, const std::string& table, const std::string& order,
                const std::function<void(int64_t, T)>& add) {
  // CROSS JOIN: in this order, so that no more than the run's rows are read.
  Statement q(db, fmt::format("SELECT r.result_id, {} FROM process CROSS JOIN result r "
                              "USING (process_id) CROSS JOIN {} t ON t.result_id = r.result_id "
                              "WHERE run_id = ?1 ORDER BY r.result_id, {}",
                              columns_of<T>("t"), table, order));
  q.bind(run);
  const RowReader<T> row(q);
  while (q.step()) add(q.integer(0), row.read());
}

/// What levels() gives, without parts of results; and the numbers of the results.
struct Ordered {
  std::vector<Level> levels;
  std::unordered_map<int64_t, size_t> row_of;  // result_id -> index
};

/// Ordered by key: a walk is by number.
Ordered read_in_order(Database& db, int64_t run) {
  std::vector<std::vector<std::pair<int64_t, Level>>> by_case;
  walk_levels(db, {.run = run}, [&](const WalkedLevel& one) {
    if (by_case.size() <= one.place) by_case.resize(one.place + 1);
    by_case[one.place].emplace_back(one.result_id, one.level);
  });
  Ordered all;
  for (auto& levels : by_case) {
    for (auto& [id, level] : levels) {
      all.row_of[id] = all.levels.size();
      all.levels.push_back(std::move(level));
    }
  }
  return all;
}

}  // namespace

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
  Statement q(
      db_,
      "SELECT DISTINCT key, CAST(value AS INTEGER) FROM process "
      "CROSS JOIN result USING (process_id) JOIN bench_case USING (case_id) "
      "JOIN metric USING (result_id) WHERE run_id = ?1 AND metric.name = ?2 AND ordinal = -1");
  q.bind(run, kGpuMetric);
  std::map<std::string, int> gpus;
  while (q.step()) gpus[q.text(0)] = static_cast<int>(q.integer(1));
  return gpus;
}

std::vector<Level> Store::levels(int64_t run) {
  return levels(run, false);
}

std::vector<Level> Store::levels_with_launches(int64_t run) {
  return levels(run, true);
}

std::vector<Level> Store::levels(int64_t run, bool launches) {
  Transaction reading(db_, "BEGIN");  // the statements of one state, whoever writes
  Ordered all = read_in_order(db_, run);
  const auto add = [&]<class T>(std::vector<T> Result::*part) {
    return [&, part](int64_t id, T value) {
      const auto row = all.row_of.find(id);
      if (row == all.row_of.end()) return;
      (all.levels[row->second].result.*part).push_back(std::move(value));
    };
  };
  read_parts<Metric>(db_, run, "metric", "ordinal, name", add(&Result::metrics));
  if (launches) {
    read_parts<KernelRow>(db_, run, "kernel", "ordinal", add(&Result::kernels));
    read_parts<StallRow>(db_, run, "stall", "ordinal, t.samples DESC, offset, reason",
                         add(&Result::stalls));
  }
  return std::move(all.levels);
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
