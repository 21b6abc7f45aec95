// SPDX-License-Identifier: Apache-2.0
// Cases of moe_align for tests: small ones, with some parameters replaced.
#pragma once

#include <map>
#include <string>

#include "kernels/moe_align/moe_align.h"

namespace moegate {

/// 7 tokens, 3 of 8 experts each, blocks of 4 rows, unless replaced.
inline Case moe_align_case(const std::map<std::string, std::string>& params) {
  Case c;
  c.suite = "test";
  c.op = MoeAlign::kOp;
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  c.params["tokens"] = "7";
  c.params["experts"] = "8";
  c.params["topk"] = "3";
  c.params["block"] = "4";
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
}

}  // namespace moegate
