// SPDX-License-Identifier: Apache-2.0
// Where compilers of kernels that are compiled at their launch keep what they made.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace moegate {

/// Makes a folder of each compiler's own below one, and returns the variables that name them.
std::map<std::string, std::string> jit_caches(const std::filesystem::path& folder);

/// Whether this process's variables name them all, and none has a file.
bool are_jit_caches_empty();

}  // namespace moegate
