// SPDX-License-Identifier: Apache-2.0
// Suite x variants -> verify -> measure -> store, with one program. ab.h does it with two.
#pragma once

#include <functional>
#include <string>

#include "harness/campaign/recording.h"
#include "harness/judge/gate.h"

namespace moegate {

/// One line: what was done where, with a count per status.
std::string summary(const Tally& tally, const std::string& what);

/// Verifies (Task::verify) or profiles (Task::profile) every planned variant once; stores nothing.
Tally check_suites(const RunOptions& options, WorkerSource& source);
/// What is known of a suite's rows before they are measured.
using KnownOf = std::function<Expectation(const std::string& suite)>;

/// Measures (Task::measure) or has a profiler look, and stores. With `resume` > 0 continues that run,
/// leaving out what has a row. With `known`, which a night gives, the rows are measured in an order in
/// which what there is no time for matters least:
/// 1. of every known row one process, and of rows that the program itself shows to be identical one of
///    each variant only;
/// 2. all other processes of known rows that are not identical;
/// 3. new rows, as many as there is time for all their processes;
/// 4. what is left of the identical ones.
Tally run_suites(const RunOptions& options, int64_t resume, WorkerSource& source,
                 const KnownOf& known = {});

}  // namespace moegate
