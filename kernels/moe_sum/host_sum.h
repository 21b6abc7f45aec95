// SPDX-License-Identifier: Apache-2.0
// moe_sum on the CPU as functions that other operators' host variants call, too.
#pragma once

#include "kernels/moe_sum/moe_sum.h"

namespace moegate::moe_sum {

/// The variants of these names.
void run_per_token(const MoeSumArgs& args);
void run_blocked(const MoeSumArgs& args);

}  // namespace moegate::moe_sum
