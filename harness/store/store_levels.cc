// SPDX-License-Identifier: Apache-2.0
// The results of a run, read for the gate and the reports. A run may have 10^5 of them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

/// What a run set out to measure, by case.
struct RunCase {
  std::string key, op, suite, section;
  size_t place = 0;  // by key
};
std::unordered_map<int64_t, RunCase> read_cases(Database& db, int64_t run) {
  Statement q(db,
              "SELECT case_id, key, op, suite, section FROM run_case CROSS JOIN bench_case "
              "USING (case_id) WHERE run_id = ?1 ORDER BY key");
  q.bind(run);
  std::unordered_map<int64_t, RunCase> cases;
  while (q.step()) {
    cases[q.integer(0)] = {q.text(1), q.text(2), q.text(3), q.text(4), cases.size()};
  }
  return cases;
}

/// What verifications found, each read once.
class Verifications {
 public:
  explicit Verifications(Database& db)
      : outputs_(db, "verified_output", "output"), seeds_(db, "verified_seed", "seed") {}
  void add_to(Result& result, int64_t id) {
    if (id == 0) return;
    const auto [found, first] = found_.try_emplace(id);
    if (first) found->second = {outputs_.read(id), seeds_.read(id)};
    result.accuracy = found->second.first;
    result.seeds = found->second.second;
  }

 private:
  template <class T>
  struct Part {
    Part(Database& db, const char* table, const char* order)
        : q(db, fmt::format("SELECT {} FROM {} t WHERE verification_id = ?1 ORDER BY {}",
                            columns_of<T>("t"), table, order)),
          row(q) {}
    std::vector<T> read(int64_t id) {
      std::vector<T> rows;
      q.bind(id);
      while (q.step()) rows.push_back(row.read());
      q.reset();
      return rows;
    }
    Statement q;
    RowReader<T> row;
  };
  Part<Accuracy> outputs_;
  Part<SeedError> seeds_;
  std::unordered_map<int64_t, std::pair<std::vector<Accuracy>, std::vector<SeedError>>> found_;
};

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

/// A result and where it belongs.
struct Row {
  int64_t result_id = 0, verification_id = 0;
  const RunCase* of = nullptr;
  int round = 0;
  Result result;

  auto order() const { return std::tie(of->place, result.variant, round, result_id); }
};

/// Results of cases that the run set out to measure, ordered by key, variant, round.
std::vector<Row> read_results(Database& db, int64_t run,
                              const std::unordered_map<int64_t, RunCase>& cases) {
  Statement q(db, fmt::format("SELECT result_id, verification_id, case_id, round, {} FROM process "
                              "CROSS JOIN result r USING (process_id) WHERE run_id = ?1",
                              columns_of<Result>("r")));
  q.bind(run);
  const RowReader<Result> result(q);
  std::vector<Row> rows;
  while (q.step()) {
    const auto of = cases.find(q.integer(2));
    if (of == cases.end()) continue;
    rows.push_back(
        {q.integer(0), q.integer(1), &of->second, static_cast<int>(q.integer(3)), result.read()});
    const std::string why = impossible_number(rows.back().result);
    if (!why.empty()) db.damaged(fmt::format("row {}: {}", rows.back().result_id, why));
  }
  std::ranges::sort(rows, {}, &Row::order);
  return rows;
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
  const auto cases = read_cases(db_, run);
  Verifications verifications(db_);
  std::vector<Level> levels;
  std::unordered_map<int64_t, size_t> row_of;  // result_id -> index
  for (Row& row : read_results(db_, run, cases)) {
    verifications.add_to(row.result, row.verification_id);
    row_of[row.result_id] = levels.size();
    levels.push_back({.key = row.of->key,
                      .op = row.of->op,
                      .suite = row.of->suite,
                      .section = row.of->section,
                      .variant = row.result.variant,
                      .round = row.round,
                      .result = std::move(row.result)});
  }
  const auto add = [&]<class T>(std::vector<T> Result::*part) {
    return [&, part](int64_t id, T value) {
      const auto row = row_of.find(id);
      if (row != row_of.end()) (levels[row->second].result.*part).push_back(std::move(value));
    };
  };
  read_parts<Metric>(db_, run, "metric", "ordinal, name", add(&Result::metrics));
  if (!launches) return levels;
  read_parts<KernelRow>(db_, run, "kernel", "ordinal", add(&Result::kernels));
  read_parts<StallRow>(db_, run, "stall", "ordinal, t.samples DESC, offset, reason",
                       add(&Result::stalls));
  return levels;
}

}  // namespace moegate
