// SPDX-License-Identifier: Apache-2.0
// What a run sets out to do: the cases of its suites, and which variants run on them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/campaign/run_options.h"
#include "harness/campaign/suite.h"
#include "harness/worker/worker.h"

namespace moegate {

/// Key of a case, and a variant.
using RowName = std::pair<std::string, std::string>;

/// One case, as the device runs it, with the variants to run on it.
struct PlannedCase {
  Case spec;
  std::vector<std::string> variants;
};

struct Plan {
  Hello hello;  // of the program
  std::vector<PlannedCase> cases;

  std::vector<RowName> rows() const;
};

/// The cases of the suites that filter and operators leave, with axes applied, as a backend can run
/// them, equal keys once. Throws Error(usage) for what load_suite() refuses, and for a common
/// parameter that has no such value.
std::vector<Case> load_cases(const RunOptions& options, const Hello& hello);
/// Has the worker's operators look at the cases. Throws Error(usage) for the first that cannot be.
void check_cases(const std::vector<Case>& cases, Worker& worker);
/// The cases, each with the program's variants that --variant leaves: perhaps none.
std::vector<PlannedCase> matching_cases(const RunOptions& options, std::vector<Case> cases,
                                        const Hello& hello);
/// The shard of a case, from 0: a hash of its key, so that a suite with one case more deals out the
/// others as before. Cold and warm of a case, which are compared with each other, are in one.
int shard_of(const Case& c, int shards);
/// Those of --shard.
std::vector<PlannedCase> part_of(std::vector<PlannedCase> planned, const RunOptions& options);
/// Which of load_cases() and of a program's variants run: kernel and shard applied. Throws
/// Error(coverage) naming what matched nothing; but a campaign's shard may be empty.
Plan select_rows(const RunOptions& options, std::vector<Case> cases, const Hello& hello);
/// Has the worker look at the planned cases once more, as they are on its device (block = tuned).
/// Throws Error(usage) for the first that cannot be there.
void check_on_device(const Plan& plan, Worker& worker);
/// All of these, each case looked at once. Throws Error(usage, coverage).
Plan make_plan(const RunOptions& options, Worker& worker);
/// The cases in another order every round, and their variants rotated, so that no case always
/// follows the same neighbour. Both sides of an A/B get the same order.
std::vector<PlannedCase> in_order(std::vector<PlannedCase> planned, uint32_t seed, int round);
/// Any but 0.
uint32_t draw_order_seed();
size_t canary_slot(const RowName& row, size_t slots);
/// The canary of a row: strengths are dealt out over the rows, the same ones to the same rows.
Canary canary_of(const RunOptions& options, const RowName& row);
/// The plan with one variant per case and factor on its ceilings, for what asks about the ceilings
/// rather than the variants: the operator's yardstick first, none that does not support the case.
/// Cases that no variant supports are left out.
Plan one_per_tolerance(Plan plan, Worker& worker);

}  // namespace moegate
