// SPDX-License-Identifier: Apache-2.0
// Reading what people wrote: numbers, shares, lists.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moegate {

/// A number and what follows it.
struct Leading {
  double value;
  std::string rest;
};

/// The number at the start of a text; nothing when it does not start with one.
std::optional<Leading> leading_number(const std::string& text);

/// The number that the whole text is; nothing when it is anything else. Knows no leading blanks, no
/// '+' and no locale; of double, "inf" and "nan" are numbers.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

/// "1%" -> 0.01; nothing for what is not more than 0 % and at most 1000 %. The sign is required, so
/// that 0.01 is never taken for a hundredth of a percent.
std::optional<double> parse_percent(const std::string& text);

/// Without blanks, tabs and line ends at either end.
std::string trimmed(const std::string& text);

/// The parts between the commas, trimmed; empty ones are kept, so that the caller can refuse them.
std::vector<std::string> split_list(const std::string& text);

/// As a person would type it in a shell: as it is, or in single quotes.
std::string shell_word(const std::string& text);

}  // namespace moegate
