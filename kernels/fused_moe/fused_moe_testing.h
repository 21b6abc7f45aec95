// SPDX-License-Identifier: Apache-2.0
// Cases of fused_moe for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/fused_moe/fused_moe.h"

namespace moegate::fused_moe {

using check::Params;

/// 7 tokens, 3 of 8 experts each, H = 256, I = 128, unless replaced.
inline Case fused_moe_case(const Params& params) {
  return check::case_of(
      FusedMoe::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "256"}, {"inter", "128"}});
}

}  // namespace moegate::fused_moe
