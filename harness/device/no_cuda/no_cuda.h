// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace moegate {

constexpr const char* kNoCuda = "this moegate was built without CUDA";

/// Throws Error(environment): what was asked for, why it is not there, and the remedy.
[[noreturn]] void refuse_cuda(const std::string& what);

}  // namespace moegate
