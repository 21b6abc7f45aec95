// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "harness/store/store.h"

namespace moegate {

/// How a run launched a kernel.
struct StoredLaunch {
  std::string kernel;  // demangled
  std::string block;   // "128x1x1"
  int64_t dynamic_shared = 0;
};

/// Every shape in which a run launched a kernel, once; without memory operations.
std::vector<StoredLaunch> launches_of(Store& store, int64_t run);

}  // namespace moegate
