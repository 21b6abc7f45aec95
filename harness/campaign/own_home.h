// SPDX-License-Identifier: Apache-2.0
// A home folder of its own for each checkout: caches, temporary files and packages that are installed for
// the user go there, and what else the user's home has is linked into it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace moegate {

/// The folder of a checkout's own home and temporary files: beside it, with a short name, because a
/// socket's path has at most 107 characters.
std::filesystem::path own_folder(const std::filesystem::path& checkout);

/// The variables that have the processes of a checkout use it. Their lengths are those of any other
/// checkout in the same folder: they lie on the stack, and its alignment shows in timings.
std::map<std::string, std::string> own_variables(const std::filesystem::path& checkout);

/// Makes it, or links what has come to the user's home since. Throws Error(usage) where it cannot be
/// written.
void make_own_home(const std::filesystem::path& checkout);

}  // namespace moegate
