// SPDX-License-Identifier: Apache-2.0
// Two programs, or two variants of one, measured against each other on one machine: a fresh process
// of each per round, in ABBA order, both runs in one store. Decides nothing itself: what is
// measured next, and the verdict, are replay_rule.h's.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "harness/campaign/recording.h"
#include "harness/judge/comparison.h"
#include "harness/judge/replay_rule.h"

namespace moegate {

/// One side. Empty strings mean: this program, every variant.
struct AbSide {
  std::string program;
  std::string variant;
  std::string label;
  std::vector<double> canary_slow_by;  // RunOptions
};

struct AbOptions {
  RunOptions run;  // selection, sampling, device and store of both sides; its rounds are not used
  AbSide base, head;
  ReplayPlan plan;
  /// Every row is measured for so many rounds, whatever the rule asks for.
  int least_rounds = 0;
  bool trust_code = true;  // leave out what launches the same machine code
  std::set<RowName> rows;  // only these, suspects of a screen already made; empty: screen all
};

/// Measures and decides by the limits of the backend that the device turns out to be. Throws
/// Error(usage, coverage, environment).
Comparison run_ab(Store& store, const AbOptions& options,
                  const std::function<Limits(Backend)>& limits);

}  // namespace moegate
