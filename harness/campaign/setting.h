// SPDX-License-Identifier: Apache-2.0
// What a run states about itself before its first row, and whether another one may be a part of it.
#pragma once

#include "harness/campaign/lanes.h"
#include "harness/campaign/plan.h"
#include "harness/values/run.h"

namespace moegate {

RunInfo describe(const RunOptions& options, const Lanes& lanes, const Hello& hello);

/// Throws Error(usage) where a run that was begun in one setting cannot be finished in this one: on another device,
/// by another timer or from another commit.
void check_same_setting(const RunInfo& before, const RunInfo& now);

}  // namespace moegate
