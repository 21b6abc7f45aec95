// SPDX-License-Identifier: Apache-2.0
// A program file as an artifact: what its content is called.
#pragma once

#include <string>

namespace moegate {

/// Content hash of a file, 32 hex digits. Throws Error(usage) naming the path when it cannot be
/// read.
std::string program_hash(const std::string& path);

/// Copies this program, and the shared libraries that were installed with it, to
/// FOLDER/<content hash>/, once; returns the path of the copy, which can be replayed later. Throws
/// Error(usage) when the folder cannot be written.
std::string keep_program(const std::string& folder);

}  // namespace moegate
