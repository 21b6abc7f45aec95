// SPDX-License-Identifier: Apache-2.0
// What --shard and --campaign say: which part of the cases, and of what it is a part. Both can be read
// from the environment of a task of a Slurm job array.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace moegate {

/// As environment() of base: the value of a variable, empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The shard, from 0, and of how many: of "K/N" with K from 1, or of "slurm", the place of this task in
/// its job array. Throws Error(usage) for anything else, outside of a job array, and for an array with
/// gaps, whose tasks are not all shards.
std::pair<int, int> parse_shard(const std::string& text, const Environment& environment);

/// A uuid as 32 hex digits; of "slurm" one that all tasks of this job array have, and no other job of
/// this cluster. Throws Error(usage).
std::string parse_campaign(const std::string& text, const Environment& environment);

}  // namespace moegate
