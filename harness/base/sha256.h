// SPDX-License-Identifier: Apache-2.0
// What binds a record to the files that it is about.
#pragma once

#include <string>

namespace moegate {

/// SHA-256 of a text as 64 hex digits, like sha256sum's.
std::string sha256(const std::string& text);

}  // namespace moegate
