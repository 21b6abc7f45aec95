// SPDX-License-Identifier: Apache-2.0
// The results of a run, read for the gate and the reports. A run may have 10^5 of them.
#include <fmt/format.h>

#include <functional>
#include <unordered_map>
#include <utility>

#include "harness/store/level_walk.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
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
