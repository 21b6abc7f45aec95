// SPDX-License-Identifier: Apache-2.0
// Cases of w4_layer for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/w4_layer/w4_layer.h"

namespace moegate::w4_layer {

using check::Params;

/// 7 tokens, 3 of 8 experts each, H = 192, I = 96, unless replaced.
inline Case w4_layer_case(const Params& params) {
  return check::case_of(
      W4Layer::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "192"}, {"inter", "96"}});
}

}  // namespace moegate::w4_layer
