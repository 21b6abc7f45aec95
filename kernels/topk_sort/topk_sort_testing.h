// SPDX-License-Identifier: Apache-2.0
// Cases of topk_sort for tests: the operator's defaults with some parameters replaced.
#pragma once

#include <map>
#include <string>

#include "kernels/topk_sort/topk_sort.h"

namespace moegate {

inline Case topk_sort_case(const std::map<std::string, std::string>& params) {
  Case c;
  c.suite = "test";
  c.op = TopkSort::kOp;
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
}

}  // namespace moegate
