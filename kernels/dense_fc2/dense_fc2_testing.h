// SPDX-License-Identifier: Apache-2.0
// Cases of dense_fc2 for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/dense_fc2/dense_fc2.h"

namespace moegate::dense_fc2 {

using check::Params;

/// 7 tokens, 3 of 8 experts each, I = 256, H = 136, unless replaced.
inline Case dense_fc2_case(const Params& params) {
  return check::case_of(
      DenseFc2::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"inter", "256"}, {"hidden", "136"}});
}

}  // namespace moegate::dense_fc2
