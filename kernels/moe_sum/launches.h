// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of moe_sum as plain functions, for operators that are chains of launches.
// All are asynchronous on `where.stream`, allocate nothing and can be captured into a graph.
// Errors: Error(internal) when a launch is refused.
#pragma once

#include "kernels/moe_sum/moe_sum.h"

namespace moegate::moe_sum {

void launch_per_token(const MoeSumArgs& args, const Launch& where);
/// H is a multiple of 8.
void launch_vectorised(const MoeSumArgs& args, const Launch& where);
/// The same; starts early (dependent_launch.cuh).
void launch_early(const MoeSumArgs& args, const Launch& where);
/// The same where row r of y is at places[r], [R].
void launch_at_places(const MoeSumArgs& args, const int32_t* places, const Launch& where);

}  // namespace moegate::moe_sum
