// SPDX-License-Identifier: Apache-2.0
// Whole files: read with a limit, written so that a reader, a crash or a full disk never leaves half of one.
#pragma once

#include <filesystem>
#include <string>

namespace moegate {

/// Whether a regular file, or a link to one, is there; what cannot be looked at is not.
bool is_file(const std::filesystem::path& path);

/// The content of a regular file. Throws Error(usage) naming the path for what is missing, cannot be
/// read, is a folder, device or pipe, or is longer than `most` bytes.
std::string read_file(const std::filesystem::path& path, size_t most = size_t{64} << 20);

/// Throws Error(usage) for an output that could not be written now: its folder is missing, or one may
/// not write there, or it is a folder itself. To be asked before what is to be written is computed.
void check_output(const std::string& path);

/// Makes `text` the content of `path`. A regular file, or the one that a link leads to, is replaced
/// by a rename after the text is on the disk: a reader sees the old content or the new. What writers
/// that were killed left beside it an hour ago or more is removed. Anything
/// else (a device, a pipe) stays what it is and is written to. Throws Error(usage) naming the path
/// for what cannot be written, and for a link that another user laid in a folder that many write in.
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

/// The same for a path that a user typed for an output: "-" is standard output.
void write_output(const std::string& path, const std::string& text);

/// Appends to a file in one write, which two writers do not mix; makes it where it is missing.
/// Throws Error(usage).
void append_to_file(const std::filesystem::path& path, const std::string& text);

}  // namespace moegate
