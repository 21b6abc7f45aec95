// SPDX-License-Identifier: Apache-2.0
#include "harness/base/pattern.h"

#include <re2/re2.h>

#include <string_view>

#include "harness/base/error.h"

namespace moegate {

bool Pattern::found_in(const std::string& text) const {
  return compiled_ && RE2::PartialMatch(text, *compiled_);
}

bool Pattern::matches(const std::string& text) const {
  return compiled_ && RE2::FullMatch(text, *compiled_);
}

Pattern compile_pattern(const std::string& what, const std::string& pattern) {
  constexpr size_t kLongest = 4096;
  if (pattern.size() > kLongest) {
    usage_error("{} is a pattern of {} bytes; {} are allowed: use a shorter one", what,
                pattern.size(), kLongest);
  }
  auto compiled = std::make_shared<const RE2>(pattern, RE2::Quiet);
  if (!compiled->ok()) {
    usage_error(
        "{} '{}' is no regular expression: {}; the syntax is RE2's, "
        "https://github.com/google/re2/wiki/Syntax",
        what, pattern, compiled->error());
  }
  return Pattern(std::move(compiled));
}

std::string exactly(const std::string& text) {
  std::string pattern =
      "^";  // RE2's own quoting escapes every '/' and '=' too, and people read this
  for (const char c : text) {
    if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

}  // namespace moegate
