// SPDX-License-Identifier: Apache-2.0
// Cases of moe_align for tests: small ones, with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {

using check::Params;

/// 7 tokens, 3 of 8 experts each, blocks of 4 rows, unless replaced.
inline Case moe_align_case(const Params& params) {
  return check::case_of(MoeAlign::kOp, params,
                        {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"block", "4"}});
}

}  // namespace moegate::moe_align
