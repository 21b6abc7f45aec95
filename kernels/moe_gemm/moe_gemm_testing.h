// SPDX-License-Identifier: Apache-2.0
// Cases of the grouped GEMMs for tests: small ones, with some parameters replaced; and a launch of
// one variant outside of the harness.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm {

using check::Params;

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 256, I = 128 unless replaced.
template <class P>
Case moe_gemm_case(const Params& params) {
  return check::case_of(
      P::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "256"}, {"inter", "128"}});
}

/// K = hidden in gate_up, inter in down; N = 2 * inter or hidden.
template <class P>
Case product_case(Params params, int k, int n) {
  const bool down = std::is_same_v<P, MoeDown>;
  params[down ? "inter" : "hidden"] = std::to_string(k);
  params[down ? "hidden" : "inter"] = std::to_string(down ? n : n / 2);
  return moe_gemm_case<P>(params);
}

}  // namespace moegate::moe_gemm
