// SPDX-License-Identifier: Apache-2.0
// Two programs, or two variants of one, measured against each other on one machine: a fresh process
// of each per round, in random balanced order, both runs in one store. What is measured next,
// and the verdict, follow the rules of judge/replay_rule.h.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/checkout.h"
#include "harness/campaign/recording.h"
#include "harness/judge/comparison.h"
#include "harness/judge/replay_rule.h"
#include "harness/night/changes.h"

namespace moegate {

/// One side. Empty strings mean: this program, every variant.
struct AbSide {
  std::string program;
  std::vector<std::string> kernels;  // none: those of the run
  std::string variant;
  std::string label;
  std::string python;                         // interpreter of its workers; empty: that of the run
  std::map<std::string, std::string> stated;  // variables of the user; empty text: without it
  std::map<std::string, std::string> tags;    // stored with its run
  std::map<std::string, std::string> variables;  // WorkerOptions
  std::vector<std::string> suites;  // of the base: the run's, as it has them; none: by their names
  std::vector<double> canary_slow_by;  // RunOptions
};

struct AbOptions {
  RunOptions run;  // selection, sampling, device and store of both sides; its rounds are not used
  AbSide base, head;
  std::optional<std::pair<Checkout, Checkout>> checkouts;  // where the sides are commits
  ReplayPlan plan;
  /// Every row is measured for so many rounds, whatever the rule asks for.
  int least_rounds = 0;
  bool trust_code = true;  // leave out what launches the same machine code
  /// The sides have an environment each: an interpreter, variables.
  bool environments = false;
  bool only_environments = false;  // and nothing else tells them apart
  /// The suspects of a screen already made, the most suspicious first; absent: screens everything.
  /// From the end of the list rows are left out that run.deadline leaves no time for.
  std::optional<std::vector<RowName>> suspects;
  /// What a process takes for a row, as far as is known before the first; 0: unknown.
  double seconds_per_row = 0;
};

/// Both sides' programs have answered, and what is to be measured is known.
struct PreparedAb {
  AbOptions options;
  Prepared base, head;
  Changes changes;
};

/// Starts a worker of each side and plans, without a store: a bad suite leaves none behind. Both
/// sides get the cases that the head's operators describe, and those of the base alone. Draws
/// run.order_seed where it is 0. Throws Error(usage, coverage, environment, interrupted).
PreparedAb prepare_ab(AbOptions options, WorkerSource& source);

/// Limits are those of the device's backend. Throws Error(usage, coverage, environment).
Comparison run_ab(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits);

}  // namespace moegate
