// SPDX-License-Identifier: Apache-2.0
// Cases of router_gemm for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {

using check::Params;

/// 7 tokens, 2 of 24 experts each, H = 232, unless replaced.
inline Case router_gemm_case(const Params& params) {
  return check::case_of(RouterGemm::kOp, params,
                        {{"tokens", "7"}, {"experts", "24"}, {"topk", "2"}, {"hidden", "232"}});
}

}  // namespace moegate::router_gemm
