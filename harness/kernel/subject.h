// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

/// A variant with the problems it is launched on in turn, so that nothing keyed on a pointer
/// survives.
struct Subject {
  const Variant* variant;
  std::vector<Problem*> sets;
};

}  // namespace moegate
