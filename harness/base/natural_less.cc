// SPDX-License-Identifier: Apache-2.0
#include "harness/base/natural_less.h"

namespace moegate {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The number written in a run of digits, without its leading zeros.
std::string digits_at(const std::string& text, size_t& i) {
  size_t start = i;
  while (i < text.size() && is_digit(text[i])) ++i;
  while (start + 1 < i && text[start] == '0') ++start;
  return text.substr(start, i - start);
}

int natural_compare(const std::string& a, const std::string& b) {
  size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      const std::string x = digits_at(a, i), y = digits_at(b, k);
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

}  // namespace

bool NaturalLess::operator()(const std::string& a, const std::string& b) const {
  return natural_compare(a, b) < 0;
}

bool NaturalLess::operator()(const std::pair<std::string, std::string>& a,
                             const std::pair<std::string, std::string>& b) const {
  const int keys = natural_compare(a.first, b.first);
  return keys != 0 ? keys < 0 : natural_compare(a.second, b.second) < 0;
}

}  // namespace moegate
