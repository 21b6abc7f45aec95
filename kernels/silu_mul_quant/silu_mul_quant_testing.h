// SPDX-License-Identifier: Apache-2.0
// Cases of silu_mul_quant for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::silu_mul_quant {

using check::Params;

/// 5 tokens, 3 experts each, I = 256, unless replaced.
inline Case silu_mul_quant_case(const Params& params) {
  return check::case_of(SiluMulQuant::kOp, params,
                        {{"tokens", "5"}, {"topk", "3"}, {"inter", "256"}});
}

}  // namespace moegate::silu_mul_quant
