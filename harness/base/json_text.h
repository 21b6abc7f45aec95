// SPDX-License-Identifier: Apache-2.0
// JSON that somebody else wrote.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace moegate {

/// Lists within lists of a text that is read: whoever walks a value may call itself so often.
constexpr int kDeepestJson = 64;

/// The value that a text is. `where` is what messages begin with: a path, or a path and a line. Throws Error(usage) for
/// what is no JSON, and for what is nested deeper than kDeepestJson.
nlohmann::json parse_json(const std::string& where, std::string_view text);

}  // namespace moegate
