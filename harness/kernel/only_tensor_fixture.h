// SPDX-License-Identifier: Apache-2.0
// For tests: a problem's tensor of a role, where there is one.
#pragma once

#include "harness/base/error.h"
#include "harness/kernel/kernel.h"

namespace moegate::test {

/// The first tensor of the role. Throws Error(internal) where the problem has none.
inline Tensor& only(Problem& problem, Role role) {
  for (Tensor* tensor : problem.tensors()) {
    if (tensor->role() == role) return *tensor;
  }
  throw Error(Exit::internal, "no such tensor");
}

}  // namespace moegate::test
