// SPDX-License-Identifier: Apache-2.0
// What the pages of a site share: its runs, and the level of every row in each of them, held so
// that ten thousand rows of a year fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/evidence.h"
#include "harness/store/store.h"

namespace moegate {

struct SiteRun {
  RunInfo info;
  bool ab = false;                      // a side of an A/B
  std::map<std::string, int> outcomes;  // of its verdict's rows; empty: it was not judged
  int blind = 0;
  /// Runs of one number measured in one way, on one GPU or one class of hosts: levels compare.
  int conditions = 0;
  bool judged() const { return !outcomes.empty(); }
  bool host() const { return info.device.backend == Backend::host; }
};

/// What one run says of a row: the logarithm of its level.
struct SitePoint {
  uint32_t run = 0;   // index
  uint32_t code = 0;  // number of what was launched; 0: unknown
  float mean_log = 0, sd_log = 0;
  uint16_t processes = 0;
  bool level = false;  // whether there is one
};

struct SiteRow {
  int64_t case_id = 0;
  std::string key, op, variant;
  std::vector<SitePoint> points;  // by run
  std::map<int, double> bases;    // by conditions: what the newest verdict compared with
};

struct SiteData {
  std::vector<SiteRun> runs;  // by id
  std::vector<SiteRow> rows;
};

/// Complete runs that measured, begun at `since` or later. Sides of A/Bs have no points.
SiteData read_site(Store& store, const std::string& since);

/// Half of the 95 % interval of a point's mean logarithm; NaN: one process has none.
double half_interval(const SitePoint& point);

/// Index of the newest run, judged ones first, of each class of devices: what is shown as today.
std::vector<size_t> newest_runs(const SiteData& data);

// Steps in the histories of a site: which histories are searched for them, and what is found.

/// Points of a history that are searched, the newest: the search is quadratic and more.
constexpr size_t kSearched = 60;
/// What all searches may cost, in squares of a history's points: so many of the longest, about 10 s
/// where each has two steps. No limit of time: every machine makes the same pages of a store.
constexpr size_t kSearchWork = 1000 * kSearched * kSearched;

/// The points of a row in runs whose levels compare, in order.
using Points = std::vector<const SitePoint*>;
/// By conditions.
std::map<int, Points> histories_of(const SiteData& data, const SiteRow& row);

/// The steps among the newest points, as `report history` finds them: the change, a share, by the
/// index of the point after it. Without a search those where the code changed.
std::map<size_t, double> steps_of(const Points& points, bool searched);

/// What two runs have otherwise, for the classes of steps between them; by their indices.
struct BetweenRuns {
  std::vector<double> alike;  // changes of rows whose code is the same
  std::optional<std::vector<EnvironmentChange>> environment;
};
using RunPairs = std::map<std::pair<uint32_t, uint32_t>, BetweenRuns>;

/// Which of a history's steps the environment made (judge/step_class.h). Of the data of a case a
/// site knows nothing. `pairs` keeps what was read.
std::set<size_t> steps_of_environment(Store& store, const SiteData& data, const Points& points,
                                      const std::map<size_t, double>& steps, RunPairs& pairs);

/// Histories in which some split parts the newest points clearly, so that they may have a step, by
/// the index of their row and their conditions.
struct StepSearch {
  std::set<std::pair<size_t, int>> searched;
  std::set<std::pair<size_t, int>> left_out;  // for want of work
};
/// What costs little is asked of every history, what costs much of those with the clearest splits:
/// for as long as their squares are within `work`.
StepSearch plan_search(const SiteData& data, size_t work = kSearchWork);

}  // namespace moegate
