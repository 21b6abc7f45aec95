// SPDX-License-Identifier: Apache-2.0
// Cases of the grouped GEMMs for tests: small ones, with some parameters replaced; and a launch of
// one variant outside of the harness.
#pragma once

#include <map>
#include <string>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate {

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 256, I = 128 unless replaced.
template <class P>
Case moe_gemm_case(const std::map<std::string, std::string>& params) {
  Case c;
  c.suite = "test";
  c.op = P::kOp;
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  c.params["tokens"] = "7";
  c.params["experts"] = "8";
  c.params["topk"] = "3";
  c.params["hidden"] = "256";
  c.params["inter"] = "128";
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
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
