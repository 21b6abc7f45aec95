// SPDX-License-Identifier: Apache-2.0
#include "harness/base/environment.h"

#include <cstdlib>

namespace moegate {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace moegate
