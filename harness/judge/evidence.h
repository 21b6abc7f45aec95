// SPDX-License-Identifier: Apache-2.0
// What a run, or a baseline, says about every row: the levels of its processes
// summarised to one Side. Which of their numbers is judged, the rows say (Judged).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/baseline.h"
#include "harness/judge/verdict.h"
#include "harness/values/run.h"

namespace moegate {

struct CaseId {
  std::string suite, key, variant;
};
struct CaseIdLess {
  bool operator()(const CaseId& a, const CaseId& b) const;
};

struct Side {
  Evidence level;    // microseconds, or ratios; n counts the processes that measured it
  double tick = 0;   // of the timer, as a share of the level, where it limits what can be seen
  double error = 0;  // largest rel_l2 over outputs and processes
  bool deterministic = true;
  Judged judged = Judged::none;  // what `level` is
  /// Host: too few processes had the machine to themselves, so the level says nothing about the
  /// kernel.
  bool disturbed = false;
  std::map<int, double> by_round;  // the levels behind `level`, for pairing with another side's
  std::string code;  // hash of what was launched; empty: unknown, or not the same in every process
  std::vector<SeedError> seeds;  // of its first process that has any
  std::string out;    // hash over all seeds' outputs; empty: unknown or not deterministic
  double anchor = 0;  // the level that creep is counted from; 0: none
  std::string timer;
  Status status = Status::ok;  // the worst of its processes
  std::string why;             // of that process
  int processes = 0;
  int affected = 0;  // processes with that status

  bool measured() const { return level.n > 0 && (status == Status::ok || status == Status::noisy); }
  /// Whether later runs may be judged against it.
  bool fit() const { return measured() && !disturbed; }
};

using Sides = std::map<CaseId, Side, CaseIdLess>;

Sides collect(const std::vector<Level>& levels);
Sides collect(const Baseline& baseline);

/// The conditions a run was measured under, as a baseline of one of its suites states them.
BaselineHeader header_of(const RunInfo& run, const std::string& suite);
/// The rows of one suite that are fit for a baseline, as its own by `by`.
Baseline to_baseline(const RunInfo& run, const std::string& suite, const Sides& sides,
                     const std::string& by);

}  // namespace moegate
