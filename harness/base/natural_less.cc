// SPDX-License-Identifier: Apache-2.0
#include "harness/base/natural_less.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace moegate {
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

}  // namespace moegate
