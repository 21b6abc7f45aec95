// SPDX-License-Identifier: Apache-2.0
// Routing that was recorded: expert ids of tokens, how many tokens each expert got, or which rank
// has it. Reads what `python3 -m moegate.routing import` writes, and .npy files of any origin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/kernel/routing.h"

namespace moegate {

/// Problem set i of a case has the case's seed plus i times this: far apart, so that the sets of
/// one seed are never those of the next. recorded_ids() gets i back from it.
constexpr int64_t kSetsApart = 1000003;

/// The experts of each token, [tokens][topk], from ids [rows, topk] in a .npy file of int16, int32
/// or int64. Of a file these are its first rows. Of a folder problem set i of seed s has file s + i
/// in natural order of the names of its .npy files, and after the last the first again, with other
/// rows: those of a forward pass of so many tokens, where the folder's routing.json states the
/// first rows of passes (a list "passes") and there is one; else so many rows in turn.
/// Throws Error(usage) naming file, row and remedy for what is no routing of that shape.
std::vector<std::vector<int>> recorded_ids(const std::string& path, const RoutingShape& shape,
                                           uint64_t seed);

/// The logarithm of each expert's weight, [experts], from counts [experts] in a .npy file;
/// -infinity for a count of 0. Drawing `topk` different experts by it evens the loads out a little;
/// which experts go together is not in it.
/// Throws Error(usage) for another shape, a count below 0, and fewer than topk experts with counts.
std::vector<double> recorded_loads(const std::string& path, const RoutingShape& shape);

/// The rank of each expert, [experts], each rank having as many: what an engine's load balancer
/// chose. Throws Error(usage) for another shape, for what is no rank, and for an uneven share.
std::vector<int> recorded_ranks(const std::string& path, int experts, int ranks);

}  // namespace moegate
