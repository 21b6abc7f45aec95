// SPDX-License-Identifier: Apache-2.0
// Cases of the grouped GEMMs for tests: small ones, with some parameters replaced; and a launch of
// one variant outside of the harness.
#pragma once

#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/testing.h"

namespace moegate {

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 256, I = 128 unless replaced.
template <class P>
Case moe_gemm_case(const Params& params) {
  return case_of(
      P::kOp,
      with_defaults(
          params,
          {{"tokens", "7"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "256"}, {"inter", "128"}}));
}

/// Runs a host variant on the problem of a case, outputs poisoned first.
inline void launch_host_variant(MoeGemm& problem, const Case& c, const std::string& name) {
  const Variant& variant = find_variant(c.op, Backend::host, name);
  const DeviceFacts& facts = problem.device().facts();
  problem.reserve_workspace(variant.workspace(c, facts));
  problem.poison();
  variant.launch(problem, {nullptr, facts});
}

}  // namespace moegate
