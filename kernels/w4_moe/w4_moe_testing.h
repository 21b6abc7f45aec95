// SPDX-License-Identifier: Apache-2.0
// Cases of the w4 products for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe {

using check::Params;

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 256, I = 128 unless replaced.
template <class P>
Case w4_case(const Params& params) {
  return check::case_of(
      P::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "256"}, {"inter", "128"}});
}

/// K = hidden in gate_up, inter in down; so many rows of weights.
template <class P>
Case product_case(Params params, int k, int n) {
  const bool down = std::is_same_v<P, W4Down>;
  params[down ? "inter" : "hidden"] = std::to_string(k);
  params[down ? "hidden" : "inter"] = std::to_string(down ? n : n / 2);
  return w4_case<P>(params);
}

}  // namespace moegate::w4_moe
