// SPDX-License-Identifier: Apache-2.0
// Reading numbers that people wrote.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace moegate {

/// A number and what follows it.
struct Leading {
  double value;
  std::string rest;
};

/// The number at the start of a text; nothing when it does not start with one.
inline std::optional<Leading> leading_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return Leading{value, std::string(end)};
}

}  // namespace moegate
