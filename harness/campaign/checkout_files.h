// SPDX-License-Identifier: Apache-2.0
// Whether the files of a folder are those that were left there, without reading them.
#pragma once

#include <filesystem>
#include <string>

namespace moegate {

/// The files below a folder, a line each: size, time of the last change in nanoseconds (which, unlike
/// that of the content, nobody can set), and path. Without what git and Python keep for themselves.
std::string list_files(const std::filesystem::path& folder);

/// A path that only one of two lists has, or that changed between them; empty where they are the same.
std::string first_difference(const std::string& before, const std::string& now);

/// `before`, and the lines of `now` with paths that it does not have.
std::string with_added(const std::string& before, const std::string& now);

}  // namespace moegate
