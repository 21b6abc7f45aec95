// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/suite_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/escape.h"
#include "harness/base/natural_less.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

bool is_suite_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

/// Of a list: neither empty nor cut short where the file is read.
bool is_suite_value(const std::string& text) {
  return !text.empty() && text == trimmed(text) && std::ranges::none_of(text, [](char c) {
    return c == ',' || c == '#' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

/// A section's name that no other has.
std::string section_name(const std::string& source, const std::string& op,
                         std::set<std::string>& taken) {
  constexpr size_t kLongest = 100;
  std::string name = source.substr(0, kLongest);
  if (source != op) name += "-" + op;
  std::ranges::replace_if(
      name, [](char c) { return !is_suite_word(std::string(1, c)); }, '-');
  std::string unique = name;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
  return unique;
}

}  // namespace

std::string fault_of_case(const SuiteCase& c) {
  if (!is_suite_word(c.op)) return fmt::format("'{}' is no name of an operator", c.op);
  for (const auto& [name, value] : c.params) {
    if (!is_suite_word(name) || name == "op") {
      return fmt::format("'{}' is no name of a parameter", name);
    }
    if (!is_suite_value(value)) {
      return fmt::format("{} = '{}' is no value that a suite can hold", name, value);
    }
  }
  return "";
}

void SuiteText::add(const std::string& source, const SuiteCase& c) {
  SuiteCase but_tokens = c;
  const auto tokens = but_tokens.params.extract("tokens");
  const std::string content =
      fmt::format("{} {} {}", c.op, but_tokens.params, tokens ? "by tokens" : "");
  if (!cases_.insert(content + (tokens ? tokens.mapped() : "")).second) return;
  const auto [at, is_new] = by_content_.emplace(content, sections_.size());
  if (is_new) sections_.push_back({source, but_tokens, {}});
  if (tokens) sections_[at->second].tokens.push_back(tokens.mapped());
}

std::string SuiteText::text(const std::string& about) const {
  std::string text = "# " + one_line(valid_utf8(about)) + "\n";
  std::set<std::string> taken;
  for (const Section& section : sections_) {
    std::vector<std::string> tokens = section.tokens;
    std::ranges::sort(tokens, NaturalLess());
    const std::string& op = section.but_tokens.op;
    text += fmt::format("\n[{}]\n", section_name(section.source, op, taken));
    if (section.source != op) text += fmt::format("# {}\n", one_line(valid_utf8(section.source)));
    text += fmt::format("op = {}\n", op);
    if (!tokens.empty()) text += fmt::format("tokens = {}\n", fmt::join(tokens, ", "));
    for (const auto& [name, value] : section.but_tokens.params) {
      text += fmt::format("{} = {}\n", name, value);
    }
  }
  return text;
}

}  // namespace moegate
