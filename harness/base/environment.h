// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace moegate {

/// The value of an environment variable; empty where it is not set, which is the same to every reader here.
std::string environment(const char* name);

}  // namespace moegate
