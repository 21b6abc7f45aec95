// SPDX-License-Identifier: Apache-2.0
// Cases of topk_sort for tests: the operator's defaults with some parameters replaced.
#pragma once

#include "kernels/check/testing.h"
#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {

using check::Params;

inline Case topk_sort_case(const Params& params) {
  return check::case_of(TopkSort::kOp, params);
}

}  // namespace moegate::topk_sort
