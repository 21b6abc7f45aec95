// SPDX-License-Identifier: Apache-2.0
// How the level of a row developed over the runs of a store, and where it changed.
// Report only: nothing here fails a gate.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/base/stats.h"
#include "harness/base/table.h"
#include "harness/judge/evidence.h"
#include "harness/judge/step_class.h"
#include "harness/report/page.h"
#include "harness/store/level_walk.h"
#include "harness/store/store.h"

namespace moegate {

/// Which series. Empty patterns match everything; patterns are ECMAScript, found anywhere.
struct HistoryQuery {
  std::string case_pattern, variant_pattern;
  std::string klass;  // exact device class; empty: any
  int last = 0;       // newest points of each series only; 0: all
  size_t most = 100;  // rows (case and variant); standard error says what is left out
};

/// What one run says.
struct HistoryPoint {
  int64_t run = 0;
  std::string started;  // UTC, ISO 8601
  std::string label;
  std::string uuid;         // of the device
  std::string commit;       // measured_commit(), its start
  Evidence level;           // microseconds on a GPU, ratios to the yardstick on a host
  std::string code;         // hash of what was launched; empty: unknown
  StepPoint recorded = {};  // all that tells what a step is of
};

/// Points that compare: a row, measured one way on one GPU, or as ratios in a class of hosts.
struct HistorySeries {
  std::string key, variant, klass;
  std::string uuid;  // empty for a host
  std::string timer, flush;
  int protocol = 0;
  Backend backend = Backend::cuda;
  std::vector<HistoryPoint> points;        // by run
  std::vector<HistoryPoint> noisy = {};    // too noisy for a step to be searched over them
  std::vector<ChangePoint> changes;        // of the logarithm of the level
  std::vector<ClassifiedStep> steps = {};  // what each change is of
};

/// Those of `points` and of `noisy`, by run.
std::vector<HistoryPoint> all_points(const HistorySeries& series);

/// "same" or "changed"; "" where either is unknown.
std::string code_between(const std::string& before, const std::string& after);

/// Calls `add` with the level of each row of a run: as it was written down, else by its results.
void each_row_level(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add);

/// A row's level in a run, as far as it tells what a step is about.
struct RunRow {
  double mean_log = 0;
  Judged judged = Judged::none;
  std::string code;
};
/// By row_name(). Rows without a level that compares are left out.
using RunRows = std::unordered_map<std::string, RunRow>;
std::string row_name(const std::string& key, const std::string& variant);
RunRows read_run_rows(Store& store, int64_t run);

/// Every series of the store that matches, from its complete runs; runs of a self-test that built
/// slow-downs in are left out. Yardsticks of a host have no level and no series. Throws
/// Error(usage) for a bad pattern and Error(coverage) when nothing matches, saying what there is.
/// A row that was too noisy to compare is no point of its series, and is listed beside them.
std::vector<HistorySeries> read_history(Store& store, const HistoryQuery& query);

/// Of each series a heading, a table, and changes with their two commits and what they are of.
Page history_page(const std::vector<HistorySeries>& all);
/// One row per point, with the columns that tell the series apart in front; for programs.
Table history_table(const std::vector<HistorySeries>& all);

}  // namespace moegate
