// SPDX-License-Identifier: Apache-2.0
// Regular expressions that people typed.
#pragma once

#include <regex>
#include <string>

#include "harness/base/error.h"

namespace moegate {

/// Throws Error(usage) naming the flag and the pattern when it is none.
inline std::regex compile_pattern(const char* flag, const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& e) {
    usage_error("{} '{}': not a regular expression: {}", flag, pattern, e.what());
  }
}

/// The pattern that matches `text` and nothing else.
inline std::string exactly(const std::string& text) {
  std::string pattern = "^";
  for (const char c : text) {
    if (std::string(".^$|()[]{}*+?\\").find(c) != std::string::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

}  // namespace moegate
