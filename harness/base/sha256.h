// SPDX-License-Identifier: Apache-2.0
// What binds a record to the files that it is about.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// SHA-256 of a text as 64 hex digits, like sha256sum's.
std::string sha256(const std::string& text);

/// Of all that stands before these places of a text, which rise.
std::vector<std::string> sha256_before(const std::string& text, const std::vector<size_t>& places);

}  // namespace moegate
