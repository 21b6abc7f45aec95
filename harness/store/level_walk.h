// SPDX-License-Identifier: Apache-2.0
// This file walks along the results of a run, one after another, as levels; what collects, profiles
// and lists them goes along here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/store/rows.h"
#include "harness/store/sqlite.h"
#include "harness/store/store.h"
#include "harness/values/run.h"

namespace moegate {

/// Columns of a result that no verdict reads, and that nothing is looked for in that cannot be.
inline constexpr auto kUnjudged = std::to_array<std::string_view>(
    {"path", "invalid", "slow", "busy_ns", "sum_ns", "sm_mhz", "wall_s"});

/// Cases by their keys. Empty: all of them.
using CaseFilter = std::function<bool(const std::string& key)>;

struct LevelChoice {
  int64_t run = 0;
  CaseFilter cases = {};  // of others no result is read
  bool verified = true;   // with accuracy and seeds; else these are empty
  /// What a verdict reads: all but kUnjudged, and of the metrics kEnqueueMetric and
  /// kInvarianceMetric.
  bool for_verdict = false;
};

struct WalkedLevel {
  const Level& level;  // lasts until the next
  int64_t result_id;
  size_t place;  // of its case among the run's, by key
};

/// Calls `add` with the results of the cases that a run set out to measure, row by row in the order
/// of the cases' numbers. Throws Error(store) for values that no run stores.
void walk_levels(Database& db, const LevelChoice& choice,
                 const std::function<void(const WalkedLevel&)>& add);

/// What launches of one result after another did; a walk leaves it out.
struct ResultParts {
  explicit ResultParts(Database& db)
      : launches(db, "kernel", "result_id", "ordinal"),
        metrics(db, "metric", "result_id", "ordinal"),  // as they lie: sorted here, for less
        stalls(db, "stall", "result_id", "ordinal, t.samples DESC, offset, reason") {}
  void read_metrics(int64_t id, Result& result) {
    metrics.read(id, result.metrics);
    std::ranges::stable_sort(result.metrics, {},
                             [](const Metric& m) { return std::tie(m.ordinal, m.name); });
  }

  PartReader<KernelRow> launches;
  PartReader<Metric> metrics;
  PartReader<StallRow> stalls;
};

/// Throws Error(store) for a text that becomes a part of a path, of a baseline's or a kept
/// program's, and is no name of a file.
void check_file_name(const Database& db, const char* what, const std::string& text);

// What complete runs say of their rows, in one line each. Whoever asks about many nights reads
// these lines and not the results, of which a year has 10^8.

struct RowLevel {
  int64_t case_id = 0;  // read, in its store
  std::string key;      // written: a year's are read without the keys that they repeat
  std::string variant;
  Status status = Status::ok;  // the worst of its processes
  Judged judged = Judged::none;
  int processes = 0;                // that measured it
  double mean_log = 0, sd_log = 0;  // of the level, which is microseconds or a ratio
  bool comparable = false;          // whether there is a level that compares with another run's
  std::string code;                 // hash of what was launched; empty: unknown
};

/// Replaces those of a run. Cases that the store does not know are left out. Throws Error(store).
void write_row_levels(Store& store, int64_t run, const std::vector<RowLevel>& rows);

/// Calls `add` with those of a run, ordered by case and variant. False: it has none, as a run
/// that was interrupted, merged, or measured on several GPUs; its results are what there is.
/// Throws Error(store).
bool read_row_levels(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add);

}  // namespace moegate
