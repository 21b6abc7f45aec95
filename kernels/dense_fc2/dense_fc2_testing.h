// SPDX-License-Identifier: Apache-2.0
// Cases of dense_fc2 for tests: small ones, with some parameters replaced; and a launch of one host
// variant outside of the harness.
#pragma once

#include "kernels/dense_fc2/dense_fc2.h"
#include "kernels/testing.h"

namespace moegate {

/// 7 tokens, 3 of 8 experts each, I = 256, H = 136, unless replaced.
inline Case dense_fc2_case(const Params& params) {
  return case_of(
      DenseFc2::kOp,
      with_defaults(
          params,
          {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"inter", "256"}, {"hidden", "136"}}));
}

inline void launch_host_variant(DenseFc2& problem, const Case& c,
                                const std::string& name = "alpha_per_expert") {
  const Variant& variant = find_variant(c.op, Backend::host, name);
  const DeviceFacts& facts = problem.device().facts();
  problem.reserve_workspace(variant.workspace(c, facts));
  problem.poison();
  variant.launch(problem, {nullptr, facts});
}

}  // namespace moegate
