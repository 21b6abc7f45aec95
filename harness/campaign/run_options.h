// SPDX-License-Identifier: Apache-2.0
// The table of a run's options. A row spells an option once: its flag, its key in the stored JSON,
// its member. With the worker's rows (worker/worker_options.h) it is all that a run can be told.
// Then what --shard and --campaign say, also in a job array, and the commands that repeat a run or
// a row.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/campaign/plan.h"
#include "harness/values/conditions.h"
#include "harness/values/run.h"

namespace moegate {

/// The rows of what is not the worker's. A row without a key is another spelling of an axis.
std::span<const Option<RunOptions>> run_options();

/// Calls `does(row, object)` for each row of both tables with the options that the row is of.
template <class Run, class F>
void for_each_option(Run& run, F&& does) {
  for (const auto& row : run_options()) does(row, run);
  for (const auto& row : worker_options()) does(row, run.worker);
}

/// The flags of a group, or of all groups, that repeat what the options say: " --suite tiny
/// --rounds 3". Empty `group`: all.
std::string repeating_flags(const RunOptions& run, const std::string& group);

/// Gives a parameter its values. Throws Error(usage) naming the flag when it has some already.
void set_axis(RunOptions& run, const char* flag, const std::string& name,
              std::vector<std::string> values);

/// Splits "a=b" for --axis and --tag. Throws Error(usage) naming the flag.
std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text);
/// Splits at commas. An empty part is an Error(usage) naming the flag.
std::vector<std::string> parse_list(const std::string& flag, const std::string& text);

// What --shard and --campaign say: which part of the cases, and of what it is a part. Both can be
// read from the environment of a task of a Slurm job array.

/// As environment() of base: the value of a variable, empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The shard, from 0, and of how many: of "K/N" with K from 1, or of "slurm", the place of this
/// task in its job array. Throws Error(usage) for anything else, outside of a job array, and for an
/// array with gaps, whose tasks are not all shards.
std::pair<int, int> parse_shard(const std::string& text, const Environment& environment);

/// A uuid as 32 hex digits; of "slurm" one that all tasks of this job array have, and no other job
/// of this cluster. Throws Error(usage).
std::string parse_campaign(const std::string& text, const Environment& environment);

// What to type to do again what a run's options say: measure it, or record it by one of NVIDIA's
// profilers. Every word is quoted for a shell, because stores and suites come from elsewhere.

/// `moegate run` with all that shapes the measurement.
std::string run_command(const RunOptions& options);

/// What to type to measure a stored run again, all of it where it is a shard's, into `db`. Made
/// from its options, as for a row: the command that a store holds may be anybody's. It is taken
/// where options are no run's of `moegate run` (an A/B, say), but only if a shell takes it for
/// nothing else than words of moegate's; else there is none.
std::string repeat_command(const RunInfo& run, const std::string& db);

/// How to run a shard of a campaign that is absent, by what the run of the others states.
std::string absent_shard_command(const RunInfo& run, int shard);

/// A command that somebody typed for another shard of the campaign, for this one, whose store is
/// still to be named.
std::string shard_command(const std::string& typed, int shard, int shards);

/// What records the launches of the options' rows under Nsight Systems, into `report`.nsys-rep. Its
/// timeline has a range "key variant" for each row; what is outside of them is verification.
std::string nsys_command(const RunOptions& options, const std::string& report);

/// What has Nsight Compute look at the kernels of these launches, and at no others, into
/// `report`.ncu-rep: every counter it has, at the clock that the GPU runs at. It replays each
/// kernel by itself, with cold caches unless `cache` is warm, so that of a chain the second kernel
/// is cold, too.
std::string ncu_command(const RunOptions& options, Cache cache, const std::string& report);

}  // namespace moegate
