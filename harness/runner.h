// SPDX-License-Identifier: Apache-2.0
// Suite x variants -> verify -> measure -> store. The only file that knows both sides.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/plan.h"
#include "harness/store.h"

namespace moegate {

struct Failure {
  std::string key, variant, why;
  Status status;
};

/// How a run went.
struct Tally {
  int64_t run = 0;  // 0 when nothing is stored
  DeviceFacts device;
  std::map<Status, int> counts;
  std::vector<Failure> failures;  // wrong, crashed, timeout, bad_timer
  std::map<std::string, std::map<ControlOutcome, int>> controls;  // by name; Task::controls
  bool interrupted = false;

  Exit exit() const;
};

/// One line: what was done where, with a count per status.
std::string summary(const Tally& tally, const std::string& what);

/// Verifies (Task::verify) or profiles (Task::profile) every planned variant once, or applies the
/// negative controls to one variant of each case (Task::controls); stores nothing.
Tally check_suites(const RunOptions& options);
/// Measures and stores. With `resume` > 0 continues that run, leaving out what has a row.
Tally run_suites(const RunOptions& options, int64_t resume);

}  // namespace moegate
