// SPDX-License-Identifier: Apache-2.0
// Cases of the qmoe operators for tests: small ones, with some parameters replaced.
#pragma once

#include <map>
#include <string>

#include "kernels/qmoe/qmoe.h"

namespace moegate {

/// A case of operator P: 7 tokens, 3 of 8 experts each, H = 192, I = 64 unless replaced.
template <class P>
Case qmoe_case(const std::map<std::string, std::string>& params) {
  Case c;
  c.suite = "test";
  c.op = P::kOp;
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  c.params["tokens"] = "7";
  c.params["experts"] = "8";
  c.params["topk"] = "3";
  c.params["hidden"] = "192";
  c.params["inter"] = "64";
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
}

}  // namespace moegate
