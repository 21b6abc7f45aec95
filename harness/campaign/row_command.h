// SPDX-License-Identifier: Apache-2.0
// What to type to do again what a run's options say: measure it, or record it by one of NVIDIA's
// profilers. Every word is quoted for a shell, because stores and suites come from elsewhere.
#pragma once

#include <string>

#include "harness/campaign/plan.h"
#include "harness/values/conditions.h"
#include "harness/values/run.h"

namespace moegate {

/// `moegate run` with all that shapes the measurement.
std::string run_command(const RunOptions& options);

/// What to type to measure a stored run again, all of it where it is a shard's, into `db`. Made from its options,
/// as for a row: the command that a store holds may be anybody's. It is taken where options are no run's of
/// `moegate run` (an A/B, say), but only if a shell takes it for nothing else than words of moegate's; else
/// there is none.
std::string repeat_command(const RunInfo& run, const std::string& db);

/// How to run a shard of a campaign that is absent, by what the run of the others states.
std::string absent_shard_command(const RunInfo& run, int shard);

/// A command that somebody typed for another shard of the campaign, for this one, whose store is still to be named.
std::string shard_command(const std::string& typed, int shard, int shards);

/// What records the launches of the options' rows under Nsight Systems, into `report`.nsys-rep. Its
/// timeline has a range "key variant" for each row; what is outside of them is verification.
std::string nsys_command(const RunOptions& options, const std::string& report);

/// What has Nsight Compute look at the kernels of these launches, and at no others, into
/// `report`.ncu-rep: every counter it has, at the clock that the GPU runs at. It replays each kernel by
/// itself, with cold caches unless `cache` is warm, so that of a chain the second kernel is cold, too.
std::string ncu_command(const RunOptions& options, Cache cache, const std::string& report);

}  // namespace moegate
