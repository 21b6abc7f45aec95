// SPDX-License-Identifier: Apache-2.0
// What a starting point says of an operator that exists: its parameters, and its tensors in a case.
#pragma once

#include <string>

#include "harness/kernel/registry.h"

namespace moegate {

struct OpSample {
  OpDescription op;     // with what a backend's variants are compared with
  Case example;         // a case of it, of the suite
  std::string header;   // relative to the source tree: "kernels/moe_sum/moe_sum.h"
  std::string space;    // of its Problem: "moegate::moe_sum"
  std::string problem;  // "MoeSum"
  std::string tensors;  // a line each: name, role, type, shape in the example

  /// Lines "tokens  T, 1 to 65536".
  std::string params_text() const;
  /// Lines of a suite, "topk = 8  # k, 1 to 16", with the example's values; of tokens those of 1, 8 and 64 that the
  /// operator takes.
  std::string suite_text(const Registry& registry) const;
};

/// Builds a problem of the operator on the host, from the case of the suite whose parameters differ most, so that a
/// shape tells which they are. Throws Error(usage) for an unknown operator and a suite that has no case of it.
OpSample sample_of(const Registry& registry, const std::string& op, const std::string& suite,
                   Backend backend);

}  // namespace moegate
