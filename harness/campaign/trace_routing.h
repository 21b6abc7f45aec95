// SPDX-License-Identifier: Apache-2.0
// Which experts a recorded router chose, as the tables that `routing = replay:` reads. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/npy.h"

namespace moegate {

struct RouterRule {
  int64_t experts = 0, topk = 0;
  bool sigmoid = false;                 // noaux_tc: sigmoid(logit) + bias decides; else the logit
  int64_t groups = 1, topk_groups = 1;  // of sigmoid: only the best groups' experts are chosen from
};

/// The experts [tokens, topk] by logits [tokens, experts] and bias [experts] (of sigmoid; empty: 0), best first; a tie
/// goes to the lower expert, and what is no number is chosen last, as topk_sort has it. The rule has to be possible:
/// topk of the experts of topk_groups groups, each of at least two.
IntTable chosen_experts(const RouterRule& rule, const std::vector<double>& logits,
                        const std::vector<double>& bias);

/// What reaches a rank that has `count` experts from `first`: a row of one expert, counted from `first`, for each
/// choice of one of them, token by token.
IntTable rows_of_rank(const IntTable& ids, int64_t first, int64_t count);

/// Why the table is no routing of so many experts, in one clause; empty when it is: every id one of them, and none
/// twice in a row.
std::string fault_of_routing(const IntTable& ids, int64_t experts);

/// The table as an .npy file of int32.
std::string npy_bytes(const IntTable& ids);

}  // namespace moegate
