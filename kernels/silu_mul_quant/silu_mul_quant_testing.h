// SPDX-License-Identifier: Apache-2.0
// Cases of silu_mul_quant for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate {

/// 5 tokens, 3 experts each, I = 256, unless replaced.
inline Case silu_mul_quant_case(const Params& params) {
  return case_of(SiluMulQuant::kOp,
                 with_defaults(params, {{"tokens", "5"}, {"topk", "3"}, {"inter", "256"}}));
}

}  // namespace moegate
