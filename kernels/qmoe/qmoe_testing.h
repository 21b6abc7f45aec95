// SPDX-License-Identifier: Apache-2.0
// Cases of the qmoe operators for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

using check::Params;

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 192, I = 64 unless replaced.
template <class P>
Case qmoe_case(const Params& params) {
  return check::case_of(
      P::kOp, params,
      {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "192"}, {"inter", "64"}});
}

}  // namespace moegate::qmoe
