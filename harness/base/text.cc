// SPDX-License-Identifier: Apache-2.0
#include "harness/base/text.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

#include "harness/base/error.h"

namespace moegate {

std::optional<Leading> leading_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return Leading{value, std::string(end)};
}

std::optional<double> parse_percent(const std::string& text) {
  const auto number = leading_number(text);
  if (!number || number->rest != "%" || !(number->value > 0) || !(number->value <= 1000)) {
    return std::nullopt;
  }
  return number->value / 100;
}

std::string trimmed(const std::string& text) {
  return boost::trim_copy_if(text, boost::is_any_of(" \t\r\n"));
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> values;
  std::istringstream in(text + ',');
  for (std::string value; std::getline(in, value, ',');) values.push_back(trimmed(value));
  return values;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789-_./=,:@%+") == std::string::npos;
  if (plain) return text;
  return "'" + boost::replace_all_copy(text, "'", "'\\''") + "'";
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The number written in a run of digits, without its leading zeros.
std::string_view digits_at(std::string_view text, size_t& i) {
  size_t start = i;
  while (i < text.size() && is_digit(text[i])) ++i;
  while (start + 1 < i && text[start] == '0') ++start;
  return text.substr(start, i - start);
}

/// How many characters they begin with alike. Eight at a time: keys have much in common.
size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  size_t i = 0;
  for (uint64_t x = 0, y = 0; i + sizeof(x) <= size; i += sizeof(x)) {
    std::memcpy(&x, a.data() + i, sizeof(x));
    std::memcpy(&y, b.data() + i, sizeof(y));
    if (x != y) break;
  }
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

/// Where the two begin to differ, at the first digit of a number.
size_t first_difference(std::string_view a, std::string_view b) {
  size_t i = common_prefix(a, b);
  while (i > 0 && is_digit(a[i - 1])) --i;
  return i;
}

}  // namespace

int NaturalLess::compare(std::string_view a, std::string_view b) {
  size_t i = first_difference(a, b), k = i;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      const std::string_view x = digits_at(a, i), y = digits_at(b, k);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (x != y) return x < y ? -1 : 1;
    } else {
      if (a[i] != b[k])
        return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[k]) ? -1 : 1;
      ++i, ++k;
    }
  }
  if (i < a.size() || k < b.size()) return i < a.size() ? 1 : -1;
  return a.compare(b);  // 08 and 8 are different texts
}

bool NaturalLess::operator()(const std::pair<std::string, std::string>& a,
                             const std::pair<std::string, std::string>& b) const {
  const int keys = compare(a.first, b.first);
  return keys != 0 ? keys < 0 : compare(a.second, b.second) < 0;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known) {
  constexpr size_t kLongestName = 64;  // bytes: what is longer is no mistyped name
  constexpr size_t kShortestStart = 3;
  if (typed.empty() || typed.size() > kLongestName) return "";
  const std::string name = boost::to_lower_copy(typed);
  const std::string* closest = nullptr;
  const size_t tolerated = (typed.size() + 2) / 3;  // one in three characters, rounded up
  size_t least = tolerated + 1;
  for (const std::string& candidate : known) {
    if (candidate.empty() || candidate.size() > kLongestName) continue;
    const std::string other = boost::to_lower_copy(candidate);
    const bool is_start = name.size() >= kShortestStart && other.starts_with(name);
    // Else "x" would be close to "y".
    const size_t distance = edit_distance(name, other);
    const bool is_close = is_start || distance < std::min(name.size(), other.size());
    if (!is_close) continue;
    const size_t rank = is_start ? std::min(distance, tolerated) : distance;
    if (rank >= least) continue;
    least = rank;
    closest = &candidate;
  }
  return closest ? fmt::format(" (did you mean '{}'?)", *closest) : "";
}

bool Pattern::found_in(const std::string& text) const {
  return compiled_ && RE2::PartialMatch(text, *compiled_);
}

bool Pattern::matches(const std::string& text) const {
  return compiled_ && RE2::FullMatch(text, *compiled_);
}

Pattern compile_pattern(const std::string& what, const std::string& pattern) {
  constexpr size_t kLongest = 4096;
  if (pattern.size() > kLongest) {
    usage_error("{}: the pattern has {} bytes, and {} are allowed; use a shorter pattern", what,
                pattern.size(), kLongest);
  }
  auto compiled = std::make_shared<const RE2>(pattern, RE2::Quiet);
  if (!compiled->ok()) {
    usage_error(
        "{} '{}' is not a regular expression: {}; write it as RE2 does, "
        "https://github.com/google/re2/wiki/Syntax",
        what, pattern, compiled->error());
  }
  return Pattern(std::move(compiled));
}

std::string count_of(size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string flags_text(const std::vector<std::pair<std::string, std::string>>& flags) {
  std::string text;
  for (const auto& [name, value] : flags) {
    if (value.empty()) continue;
    text += fmt::format("{}--{} '{}'", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string exactly(const std::string& text) {
  std::string pattern = text;  // RE2's own quoting escapes every '/' and '=' too: people read this
  RE2::GlobalReplace(&pattern, R"([.^$|()\[\]{}*+?\\])", R"(\\\0)");
  return "^" + pattern + "$";
}

}  // namespace moegate
