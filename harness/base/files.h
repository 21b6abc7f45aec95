// SPDX-License-Identifier: Apache-2.0
// Writing whole files so that a reader, a crash or a full disk never leaves half of one.
#pragma once

#include <filesystem>
#include <string>

namespace moegate {

/// Makes `text` the content of `path`. A regular file, or the one that a link leads to, is replaced
/// by a rename after the text is on the disk: a reader sees the old content or the new. Anything
/// else (a device, a pipe) stays what it is and is written to. Throws Error(usage) naming the path
/// for what cannot be written.
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

/// The same for a path that a user typed for an output: "-" is standard output.
void write_output(const std::string& path, const std::string& text);

/// Appends to a file in one write, which two writers do not mix; makes it where it is missing.
/// Throws Error(usage).
void append_to_file(const std::filesystem::path& path, const std::string& text);

}  // namespace moegate
