// SPDX-License-Identifier: Apache-2.0
// A run from its plan to its last row, and how long it will take.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "harness/campaign/lanes.h"
#include "harness/campaign/plan.h"
#include "harness/campaign/program.h"
#include "harness/campaign/recording.h"
#include "harness/judge/gate.h"
#include "harness/values/run.h"

namespace moegate {

/// Starts a worker on every device, plans with what it says, and says on stderr why its timer is
/// not the one asked for. Throws Error(usage, coverage, environment, interrupted).
Prepared prepare(const RunOptions& options, WorkerSource& source);
/// Its first step: a program whose plan has no case yet. Both sides of an A/B share a dealer.
Prepared open_program(RunOptions options, WorkerSource& source,
                      std::shared_ptr<Dealer> dealer = {});
/// Its last step, once a plan is made.
void end_preparing(const Hello& hello);

/// One line: what was done where, with a count per status.
std::string summary(const Tally& tally, const std::string& what);

/// Verifies (Task::verify) or profiles (Task::profile) every planned variant once; stores nothing.
Tally check_suites(const RunOptions& options, WorkerSource& source);
/// What is known of a suite's rows before they are measured.
using KnownOf = std::function<Expectation(const std::string& suite)>;

/// Measures (Task::measure) or has a profiler look, and stores. With `resume` > 0 continues that
/// run, leaving out what has a row. With `known`, which a night gives, the rows are measured in an
/// order in which what there is no time for matters least:
/// 1. of every known row one process, and of rows that the program itself shows to be identical one
///    of each variant only;
/// 2. all other processes of known rows that are not identical;
/// 3. new rows, as many as there is time for all their processes;
/// 4. what is left of the identical ones.
Tally run_suites(const RunOptions& options, int64_t resume, WorkerSource& source,
                 const KnownOf& known = {});

/// Verifies, as a server would meet them, in a process for each suite and variant, with rising
/// numbers of tokens, and stores what first launches cost (Task::compile). Every process finds the
/// compilers' caches empty: they lie in a scratch folder beside the store.
Tally sweep_first_launches(RunOptions options, WorkerSource& source);

/// Replaces the kernels from elsewhere that a stored run names by those that a user names: they are
/// code, and a store may be anybody's. Throws Error(usage) unless there are as many.
void use_named_kernels(RunOptions& stored, const std::vector<std::string>& named,
                       const std::string& whose);

// How long a run is going to take, said before its first case.

struct TimePlan {
  size_t rows = 0;
  int rounds = 0;
  size_t results = 0;       // still to be measured; without --resume rows x rounds
  double seconds_each = 0;  // that earlier runs on this device took; 0: there are none
  double budget_s = 0;      // Sampling::budget_s
  double case_timeout_s = 0;
  size_t devices = 1;  // that work at the same time
};

/// One line: how many results, how long and why so, and when a row that hangs is given up.
std::string time_text(const TimePlan& plan);

}  // namespace moegate
