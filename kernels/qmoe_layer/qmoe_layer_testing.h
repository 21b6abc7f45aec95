// SPDX-License-Identifier: Apache-2.0
// Cases of qmoe_layer for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/qmoe_layer/qmoe_layer.h"

namespace moegate::qmoe_layer {

using check::Params;

/// 7 tokens, 3 of 8 experts each, H = 192, I = 64, unless replaced.
inline Case qmoe_layer_case(const Params& params) {
  return check::case_of(
      QmoeLayer::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "192"}, {"inter", "64"}});
}

}  // namespace moegate::qmoe_layer
