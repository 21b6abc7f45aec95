// SPDX-License-Identifier: Apache-2.0
// A program file as an artifact: what its content is called.
#pragma once

#include <string>

namespace moegate {

/// Content hash of a file, 32 hex digits. Throws Error(usage) naming the path when it cannot be
/// read.
std::string program_hash(const std::string& path);

}  // namespace moegate
