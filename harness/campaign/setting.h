// SPDX-License-Identifier: Apache-2.0
// What a run states about itself before its first row, and whether another one may be a part of it.
#pragma once

#include "harness/campaign/kept_kernels.h"
#include "harness/campaign/lanes.h"
#include "harness/campaign/plan.h"
#include "harness/values/run.h"

namespace moegate {

/// `kernels`: of kernels from elsewhere, what they are made of once they are loaded.
RunInfo describe(const RunOptions& options, const Lanes& lanes, const Hello& hello,
                 const KernelFiles& kernels);

/// Throws Error(usage) where a run that was begun in one setting cannot be finished in this one: on another device,
/// by another timer or from another commit.
void check_same_setting(const RunInfo& before, const RunInfo& now);

/// Replaces the kernels from elsewhere that a stored run names by those that a user names: they are code,
/// and a store may be anybody's. Throws Error(usage) unless there are as many, saying how to name them.
void use_named_kernels(RunOptions& stored, const std::vector<std::string>& named,
                       const std::string& whose);

}  // namespace moegate
