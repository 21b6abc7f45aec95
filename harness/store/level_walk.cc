// SPDX-License-Identifier: Apache-2.0
#include "harness/store/level_walk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/store/result_checksum.h"

namespace moegate {
namespace {

// The first columns of the statement; those of Result follow, of which the variant is the first.
constexpr int kResultId = 0, kCaseId = 1, kVerificationId = 2, kChecksum = 3, kVerifiedChecksum = 4,
              kEnqueue = 5, kInvariance = 6, kVariant = 7;

/// SQL of the value of a metric; few stores have it, and a look for what is not there costs as much
/// as one for what is.
std::string metric_sql(Database& db, const char* name) {
  const auto ids = values_of<int64_t>(  // one for each unit
      db, "SELECT metric_id FROM metric_name WHERE name = ?1", name);
  if (ids.empty()) return "NULL";
  return fmt::format(
      "(SELECT value FROM metric_value m WHERE m.result_id = r.result_id AND ordinal = -1 AND "
      "metric_id IN ({}) ORDER BY metric_id DESC LIMIT 1)",
      fmt::join(ids, ", "));
}

/// Numbers of cases, from the first to the last.
using CaseRange = std::pair<int64_t, int64_t>;

/// A process of a run, and at which of its results the walk is.
struct WalkedProcess {
  WalkedProcess(Database& db, const std::string& sql, LeftOut left_out, int64_t the_id,
                int the_round, std::span<const CaseRange> ranges)
      : q(db, sql), reader(q, left_out), id(the_id), round(the_round), ahead(ranges) {}
  bool step() {
    while (!in_range || !q.step()) {
      in_range = !ahead.empty();
      if (!in_range) return false;
      q.again();
      q.bind(id, ahead.front().first, ahead.front().second);
      ahead = ahead.subspan(1);
    }
    result_id = q.integer(kResultId);
    case_id = q.integer(kCaseId);
    variant = q.view(kVariant);
    return true;
  }
  auto order() const { return std::tie(case_id, variant, round, result_id); }
  /// All but its accuracy, seeds and launches, and what was left out, which stay as they are in
  /// `result`; of the metrics, none or those that a verdict reads. Throws Error(store) for values
  /// that no run stores.
  void read(Result& result) const {
    reader.read(result);
    result.metrics.clear();
    const auto add = [&](int column, const char* name, const char* unit) {
      if (q.is_null(column)) return;
      result.metrics.push_back({.name = name, .unit = unit, .value = q.real(column)});
    };
    add(kEnqueue, kEnqueueMetric, "ns");
    add(kInvariance, kInvarianceMetric, "tokens");
  }

  Statement q;
  RowReader<Result> reader;
  int64_t id;
  int round;
  std::span<const CaseRange> ahead;  // ranges that it has not begun
  bool in_range = false;
  int64_t result_id = 0, case_id = 0;
  std::string_view variant;  // the statement's, until its next step
};

/// The results of a run, row by row: by number of the case, then variant, then round. It goes along
/// the index of every process side by side, so that nothing is sorted and one result is held at a
/// time, of a run that has 10^5 or more.
class ResultWalk {
 public:
  /// Those of cases in `ranges`, which ascend and outlive the walk; nothing of the others is read.
  /// `for_verdict`: without kUnjudged, with a verdict's metrics. The walk sees one state of the
  /// store only within a Transaction.
  ResultWalk(Database& db, int64_t run, std::span<const CaseRange> ranges, bool for_verdict) {
    const LeftOut left_out = for_verdict ? LeftOut(kUnjudged) : LeftOut();
    const std::string sql = fmt::format(
        "SELECT result_id, case_id, verification_id, checksum, verified_checksum, {} AS enqueue, "
        "{} AS invariance, {} FROM result r WHERE process_id = ?1 AND case_id BETWEEN ?2 AND ?3 "
        "ORDER BY case_id, r.variant",
        for_verdict ? metric_sql(db, kEnqueueMetric) : "NULL",
        for_verdict ? metric_sql(db, kInvarianceMetric) : "NULL",
        columns_of<Result>("r", left_out));
    Statement processes(db, "SELECT process_id, round FROM process WHERE run_id = ?1");
    processes.bind(run);
    while (processes.step()) {
      put(std::make_unique<WalkedProcess>(db, sql, left_out, processes.integer(0),
                                          static_cast<int>(processes.integer(1)), ranges));
    }
  }
  /// At the first result, then at the next; null where there is none.
  const WalkedProcess* next() {
    if (now_) put(std::move(now_));
    if (heap_.empty()) return nullptr;
    std::ranges::pop_heap(heap_, comes_later);
    now_ = std::move(heap_.back());
    heap_.pop_back();
    return now_.get();
  }

 private:
  /// The first to come is at the front of the heap.
  static bool comes_later(const std::unique_ptr<WalkedProcess>& a,
                          const std::unique_ptr<WalkedProcess>& b) {
    return b->order() < a->order();
  }
  void put(std::unique_ptr<WalkedProcess> process) {
    if (!process->step()) return;
    heap_.push_back(std::move(process));
    std::ranges::push_heap(heap_, comes_later);
  }

  std::vector<std::unique_ptr<WalkedProcess>> heap_;  // that have results left
  std::unique_ptr<WalkedProcess> now_;
};

/// What a run set out to measure.
struct RunCase {
  std::string key, op, suite, section;
  size_t place = 0;  // by key
  bool chosen = true;
};
using RunCases = std::map<int64_t, RunCase>;

RunCases read_cases(Database& db, const LevelChoice& choice) {
  Statement q(db,
              "SELECT case_id, key, op, suite, section FROM run_case CROSS JOIN bench_case "
              "USING (case_id) WHERE run_id = ?1 ORDER BY key");
  q.bind(choice.run);
  RunCases cases;
  while (q.step()) {
    RunCase one{q.text(1), q.text(2), q.text(3), q.text(4), cases.size()};
    check_file_name(db, "the suite", one.suite);
    one.chosen = !choice.cases || choice.cases(one.key);
    cases.insert_or_assign(cases.end(), q.integer(0), std::move(one));
  }
  return cases;
}

/// Those that are chosen, in as few ranges as there are without one that is not.
std::vector<CaseRange> ranges_of(const RunCases& cases) {
  std::vector<CaseRange> ranges;
  bool goes_on = false;
  for (const auto& [id, one] : cases) {
    if (one.chosen && goes_on) ranges.back().second = id;
    if (one.chosen && !goes_on) ranges.emplace_back(id, id);
    goes_on = one.chosen;
  }
  return ranges;
}

}  // namespace

void check_file_name(const Database& db, const char* what, const std::string& text) {
  if (is_file_name(text)) return;
  db.damaged(fmt::format("{} '{}' of a run is no name of a file", what, one_line(text)));
}

void walk_levels(Database& db, const LevelChoice& choice,
                 const std::function<void(const WalkedLevel&)>& add) {
  const RunCases cases = read_cases(db, choice);
  const std::vector<CaseRange> ranges = ranges_of(cases);
  std::optional<Verifications> verifications;
  if (choice.verified) verifications.emplace(db);
  auto of = cases.begin();
  Level level;
  uint64_t key = 0;  // its hash
  ResultWalk walk(db, choice.run, ranges, choice.for_verdict);
  while (const WalkedProcess* at = walk.next()) {
    while (of != cases.end() && of->first < at->case_id) ++of;
    if (of == cases.end()) break;
    const RunCase& one = of->second;
    if (of->first != at->case_id) continue;
    if (level.key != one.key) {
      level.key = one.key, level.op = one.op, level.suite = one.suite, level.section = one.section;
      key = hash_of_key(one.key);
    }
    at->read(level.result);
    level.variant = level.result.variant;
    level.round = at->round;
    const std::string why = impossible_number(level.result);
    if (!why.empty()) db.damaged(fmt::format("row {}: {}", at->result_id, why));
    const auto check = [&](const char* what, int stored, int64_t is) {
      check_sum(db, choice.run, at->result_id, level.variant, what, at->q.integer(stored), is);
    };
    if (at->q.integer(kChecksum) != kNoChecksum) {
      check("its numbers", kChecksum, checksum_of_numbers(level.result, key));
    }
    if (verifications) {
      const int64_t found = verifications->give(level.result, at->q.integer(kVerificationId));
      check("its accuracy and seeds", kVerifiedChecksum, found);
    }
    add({level, at->result_id, one.place});
  }
}

void write_row_levels(Store& store, int64_t run, const std::vector<RowLevel>& rows) {
  Database& db = store.database();
  Transaction transaction(db);
  db.run("DELETE FROM row_level WHERE run_id = ?1", run);
  Statement insert(db,
                   "INSERT INTO row_level (run_id, case_id, variant, status, judged, processes, "
                   "mean_log, sd_log, comparable, code) SELECT ?1, case_id, ?3, ?4, ?5, ?6, ?7, "
                   "?8, ?9, ?10 FROM bench_case WHERE key = ?2");
  for (const RowLevel& row : rows) {
    insert
        .bind(run, row.key, row.variant, name_of(row.status), name_of(row.judged), row.processes,
              row.mean_log, row.sd_log, row.comparable, row.code)
        .run();
  }
  transaction.commit();
}

bool read_row_levels(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add) {
  Statement q(store.database(),
              "SELECT case_id, variant, status, judged, processes, mean_log, sd_log, "
              "comparable, code FROM row_level WHERE run_id = ?1 ORDER BY case_id, variant");
  q.bind(run);
  RowLevel row;
  bool any = false;
  while (q.step()) {
    int column = 0;
    const auto next = [&](auto& value) { read_column(q, column++, value); };
    next(row.case_id), next(row.variant), next(row.status), next(row.judged);
    next(row.processes), next(row.mean_log), next(row.sd_log), next(row.comparable);
    next(row.code);
    add(row);
    any = true;
  }
  return any;
}

}  // namespace moegate
