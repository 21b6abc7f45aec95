// SPDX-License-Identifier: Apache-2.0
// The results of a run, read for the gate and the reports. A run may have 10^5 of them.
#include <fmt/format.h>

#include <functional>
#include <unordered_map>
#include <utility>

#include "harness/store/result_walk.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

/// What a run set out to measure, by case.
struct RunCase {
  std::string key, op, suite, section;
  size_t place = 0;  // by key
};
using RunCases = std::unordered_map<int64_t, RunCase>;

RunCases read_cases(Database& db, int64_t run) {
  Statement q(db,
              "SELECT case_id, key, op, suite, section FROM run_case CROSS JOIN bench_case "
              "USING (case_id) WHERE run_id = ?1 ORDER BY key");
  q.bind(run);
  RunCases cases;
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
  /// Gives one result after another what its verification found.
  void give(Result& result, int64_t id) {
    if (id == given_) return;
    const auto [found, first] = found_.try_emplace(id);
    if (first && id != 0) found->second = {outputs_.read(id), seeds_.read(id)};
    result.accuracy = found->second.first;
    result.seeds = found->second.second;
    given_ = id;
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
  int64_t given_ = 0;
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

/// Calls `add` with every result of a case that the run set out to measure, row by row, in a Level that
/// lasts until the next; with its case and its number, too.
template <class Add>
void walk_levels(Database& db, int64_t run, bool enqueue, const Add& add) {
  const RunCases cases = read_cases(db, run);
  Verifications verifications(db);
  const RunCase* of = nullptr;
  Level level;
  for (ResultWalk walk(db, run, enqueue); walk.next();) {
    const auto found = cases.find(walk.case_id());
    if (found == cases.end()) continue;
    if (of != &found->second) {
      of = &found->second;
      level.key = of->key, level.op = of->op, level.suite = of->suite, level.section = of->section;
    }
    walk.read(level.result);
    level.variant = level.result.variant;
    level.round = walk.round();
    const std::string why = impossible_number(level.result);
    if (!why.empty()) db.damaged(fmt::format("row {}: {}", walk.result_id(), why));
    verifications.give(level.result, walk.verification_id());
    add(*of, walk.result_id(), std::as_const(level));
  }
}

/// What levels() gives, without parts of results; and the numbers of the results.
struct Ordered {
  std::vector<Level> levels;
  std::unordered_map<int64_t, size_t> row_of;  // result_id -> index
};

/// Ordered by key: a walk is by number.
Ordered read_in_order(Database& db, int64_t run) {
  std::vector<std::vector<std::pair<int64_t, Level>>> by_case;
  walk_levels(db, run, false, [&](const RunCase& of, int64_t id, const Level& level) {
    if (by_case.size() <= of.place) by_case.resize(of.place + 1);
    by_case[of.place].emplace_back(id, level);
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

EachLevel Store::each_level(int64_t run) {
  return [this, run](const std::function<void(const Level&)>& add) {
    Transaction reading(db_, "BEGIN");
    walk_levels(db_, run, true, [&](const RunCase&, int64_t, const Level& level) { add(level); });
  };
}

}  // namespace moegate
