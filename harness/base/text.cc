// SPDX-License-Identifier: Apache-2.0
#include "harness/base/text.h"

#include <cstdlib>
#include <sstream>

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
  constexpr const char* kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
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
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace moegate
