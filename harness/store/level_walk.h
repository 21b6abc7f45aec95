// SPDX-License-Identifier: Apache-2.0
// The results of a run as levels, one after another: what collects, profiles and lists them goes along here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "harness/store/sqlite.h"
#include "harness/values/run.h"

namespace moegate {

/// Cases by their keys. Empty: all of them.
using CaseFilter = std::function<bool(const std::string& key)>;

/// What of a run is read.
struct LevelChoice {
  int64_t run = 0;
  CaseFilter cases = {};  // of others no result is read
  bool verified = true;   // with accuracy and seeds; else these are empty
  /// What a verdict reads: all but kUnjudged, and kEnqueueMetric. There are no other metrics.
  bool for_verdict = false;
};

struct WalkedLevel {
  const Level& level;  // lasts until the next
  int64_t result_id;
  size_t place;  // of its case among the run's, by key
};

/// Calls `add` with the results of the cases that a run set out to measure, row by row in the order of the
/// cases' numbers. Throws Error(store) for values that no run stores.
void walk_levels(Database& db, const LevelChoice& choice,
                 const std::function<void(const WalkedLevel&)>& add);

/// Throws Error(store) for a text that becomes a part of a path, of a baseline's or a kept program's, and is
/// no name of a file.
void check_file_name(const Database& db, const char* what, const std::string& text);

}  // namespace moegate
