// SPDX-License-Identifier: Apache-2.0
// Cases of moe_sum for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/moe_sum/moe_sum.h"

namespace moegate::moe_sum {

using check::Params;

/// 5 tokens of 3 rows, H = 64, unless replaced.
inline Case moe_sum_case(const Params& params) {
  return check::case_of(MoeSum::kOp, params, {{"tokens", "5"}, {"topk", "3"}, {"hidden", "64"}});
}

}  // namespace moegate::moe_sum
