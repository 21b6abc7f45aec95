// SPDX-License-Identifier: Apache-2.0
// This file reads what people wrote: numbers, shares, lists, patterns and names, their order, and
// what was meant by a name that was mistyped.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace re2 {
class RE2;
}

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

/// Orders by text, digits by their number: tokens=8 before tokens=16.
struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const { return compare(a, b) < 0; }
  bool operator()(const std::pair<std::string, std::string>& a,
                  const std::pair<std::string, std::string>& b) const;
  /// Below, equal to or above 0.
  static int compare(std::string_view a, std::string_view b);
};

/// How many bytes to insert, leave out, replace, or swap with their neighbour, to make one text of
/// the other.
size_t edit_distance(const std::string& a, const std::string& b);

/// " (did you mean 'x'?)", of the known name that is closest, for a message behind the one that was
/// typed; nothing where none is close. Upper and lower case are equal. The start of a name is close
/// to it.
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known);

// Regular expressions that people typed: RE2's, whose time and memory grow with the text alone, so
// that no pattern and no name hangs or crashes the program.

/// A compiled pattern; copies share it. One that is default-constructed is found nowhere.
class Pattern {
 public:
  Pattern() = default;
  bool found_in(const std::string& text) const;
  /// True where the pattern fits all of `text`.
  bool matches(const std::string& text) const;

 private:
  friend Pattern compile_pattern(const std::string& what, const std::string& pattern);
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const re2::RE2> compiled_;
};

/// Throws Error(usage) naming `what` (a flag, a file's field) and the pattern when it is none, or
/// is longer than 4096 bytes.
Pattern compile_pattern(const std::string& what, const std::string& pattern);

/// What a projection makes of each element, in their order: names for did_you_mean().
template <class Range, class Projection>
auto mapped(Range&& range, Projection projection) {
  std::vector<std::decay_t<decltype(std::invoke(projection, *std::begin(range)))>> made;
  for (auto&& element : range) made.push_back(std::invoke(projection, element));
  return made;
}

/// "1 row", "2 rows".
std::string count_of(size_t n, std::string_view thing);

/// "--filter 'x', --variant 'y'" of flags that are not empty.
std::string flags_text(const std::vector<std::pair<std::string, std::string>>& flags);

/// The pattern that matches `text` and nothing else.
std::string exactly(const std::string& text);

}  // namespace moegate
