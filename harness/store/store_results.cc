// SPDX-License-Identifier: Apache-2.0
// The rows of a result in the store: written by a run, read by the gate and the reports.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>

#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

static_assert(std::endian::native == std::endian::little, "sample blobs are little-endian");

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

void insert_parts(Database& db, int64_t result, const Result& r) {
  const std::pair of("result_id", result);
  for (const Accuracy& a : r.accuracy) insert_row(db, "accuracy", a, of);
  for (const SeedError& s : r.seeds) insert_row(db, "seed_error", s, of);
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    insert_row(db, "kernel", r.kernels[i], of, std::pair("ordinal", static_cast<int64_t>(i)));
  }
  for (const Metric& m : r.metrics) insert_row(db, "metric", m, of);
  for (const StallRow& s : r.stalls) insert_row(db, "stall", s, of);
  if (!r.spans_ns.empty()) {
    Statement(db, "INSERT INTO sample (result_id, spans) VALUES (?1, ?2)")
        .bind(result, std::as_bytes(std::span(r.spans_ns)))
        .run();
  }
}

/// Calls `add` with every row that a run has in a table of parts of results, and the result's id.
template <class T>
void read_parts(Database& db, int64_t run, const std::string& table, const std::string& order,
                const std::function<void(int64_t, T)>& add) {
  Statement q(db, fmt::format("SELECT result_id, {} FROM {} t JOIN result USING (result_id) "
                              "JOIN process USING (process_id) WHERE run_id = ?1 "
                              "ORDER BY result_id, {}",
                              columns_of<T>("t"), table, order));
  q.bind(run);
  const Columns columns(q);
  while (q.step()) add(columns.integer("result_id"), columns.row<T>());
}

}  // namespace

void Store::add_result(int64_t process, const Case& c, const Cost& cost,
                       const std::vector<Fact>& facts, const Result& result) {
  Transaction transaction(db_);
  const int64_t case_id = upsert_case(db_, c, cost);
  upsert_run_case(db_, process, case_id, c, facts);
  insert_row(db_, "result", result, std::pair("process_id", process),
             std::pair("case_id", case_id));
  insert_parts(db_, db_.last_id(), result);
  transaction.commit();
}

void Store::mark_suspect_warm(int64_t run, const std::string& key, const std::string& variant) {
  Statement(db_,
            "UPDATE result SET suspect_warm = 1 WHERE variant = ?3 "
            "AND process_id IN (SELECT process_id FROM process WHERE run_id = ?1) "
            "AND case_id = (SELECT case_id FROM bench_case WHERE key = ?2)")
      .bind(run, key, variant)
      .run();
}

void Store::mark_crashed(int64_t process, const std::string& key, const std::string& variant,
                         const std::string& why) {
  Statement(db_,
            "UPDATE result SET status = 'crashed', why = ?4 WHERE process_id = ?1 AND variant = ?3 "
            "AND case_id = (SELECT case_id FROM bench_case WHERE key = ?2)")
      .bind(process, key, variant, why)
      .run();
}

std::set<std::tuple<int, std::string, std::string>> Store::done(int64_t run) {
  Statement q(db_,
              "SELECT round, key, variant FROM result JOIN process USING (process_id) "
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
  Statement q(db_, fmt::format("SELECT result_id, key, op, suite, section, round, {} "
                               "FROM result r JOIN process USING (process_id) "
                               "JOIN bench_case USING (case_id) "
                               "JOIN run_case USING (run_id, case_id) WHERE run_id = ?1 "
                               "ORDER BY key, variant, round, result_id",
                               columns_of<Result>("r")));
  q.bind(run);
  const Columns columns(q);
  std::vector<Level> levels;
  std::map<int64_t, size_t> row_of;  // result_id -> index
  while (q.step()) {
    row_of[columns.integer("result_id")] = levels.size();
    const std::string why = impossible_number(columns.row<Result>());
    if (!why.empty()) db_.damaged(fmt::format("row {}: {}", columns.integer("result_id"), why));
    levels.push_back({.key = columns.text("key"),
                      .op = columns.text("op"),
                      .suite = columns.text("suite"),
                      .section = columns.text("section"),
                      .variant = columns.text("variant"),
                      .round = static_cast<int>(columns.integer("round")),
                      .result = columns.row<Result>()});
  }
  const auto result = [&](int64_t id) -> Result& {
    const auto row = row_of.find(id);
    if (row == row_of.end()) db_.damaged(fmt::format("a part of row {}, which is not there", id));
    return levels[row->second].result;
  };
  read_parts<Accuracy>(db_, run, "accuracy", "output", [&](int64_t id, Accuracy a) {
    result(id).accuracy.push_back(std::move(a));
  });
  read_parts<SeedError>(db_, run, "seed_error", "seed",
                        [&](int64_t id, SeedError s) { result(id).seeds.push_back(std::move(s)); });
  read_parts<Metric>(db_, run, "metric", "ordinal, name",
                     [&](int64_t id, Metric m) { result(id).metrics.push_back(std::move(m)); });
  if (!launches) return levels;
  read_parts<KernelRow>(db_, run, "kernel", "ordinal", [&](int64_t id, KernelRow k) {
    result(id).kernels.push_back(std::move(k));
  });
  read_parts<StallRow>(db_, run, "stall", "ordinal, t.samples DESC, offset, reason",
                       [&](int64_t id, StallRow s) { result(id).stalls.push_back(std::move(s)); });
  return levels;
}

}  // namespace moegate
