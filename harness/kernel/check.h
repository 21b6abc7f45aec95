// SPDX-License-Identifier: Apache-2.0
// What an operator's check() returns, and the comparisons that it makes. Kernels do without it:
// what judges outputs may change without compiling them again.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/values/accuracy.h"

namespace moegate {

/// Outputs compared with the truth, and their hash, from one look at them.
struct Checked {
  std::vector<Accuracy> accuracy;  // one per output tensor
  uint64_t hash = 0;  // of the defined part of every output: tells whether two launches agree
};

}  // namespace moegate
