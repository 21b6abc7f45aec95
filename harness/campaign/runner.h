// SPDX-License-Identifier: Apache-2.0
// Suite x variants -> verify -> measure -> store, with one program. ab.h does it with two.
#pragma once

#include <string>

#include "harness/campaign/recording.h"

namespace moegate {

/// One line: what was done where, with a count per status.
std::string summary(const Tally& tally, const std::string& what);

/// Verifies (Task::verify) or profiles (Task::profile) every planned variant once; stores nothing.
Tally check_suites(const RunOptions& options, WorkerSource& source);
/// Measures (Task::measure) or has a profiler look, and stores. With `resume` > 0 continues that run,
/// leaving out what has a row.
Tally run_suites(const RunOptions& options, int64_t resume, WorkerSource& source);

}  // namespace moegate
