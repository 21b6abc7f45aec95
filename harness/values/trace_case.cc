// SPDX-License-Identifier: Apache-2.0
#include "harness/values/trace_case.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr const char* kOwn = "moegate.";

/// Letters and digits whatever the locale says.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

std::string percent_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

/// Nothing for what percent_encoded() does not write.
std::optional<std::string> percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool two = text.size() - i > 2;
    if (!two || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

bool differs_from_launch_to_launch(const std::string& param) {
  return param == "tokens" || param == "seed";
}

/// A number that is written as it would be written again.
std::optional<int64_t> whole_number(const std::string& text) {
  const auto value = parse_number<int64_t>(text);
  const bool same = value && *value >= 0 && std::to_string(*value) == text;
  return same ? value : std::nullopt;
}

}  // namespace

TraceCase trace_case(const std::string& key) {
  const size_t slash = key.find('/');
  TraceCase traced;
  traced.definition = kOwn + percent_encoded(key.substr(0, slash));
  if (slash == std::string::npos) return traced;
  for (const std::string& param : split_list(key.substr(slash + 1))) {
    const size_t equals = param.find('=');
    const std::string name = param.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : param.substr(equals + 1);
    const auto whole = whole_number(value);
    if (whole) {
      traced.axes[name] = *whole;
    } else if (const auto number = parse_number<double>(value); number && std::isfinite(*number)) {
      traced.scalars[name] = *number;
    }
    if (whole && differs_from_launch_to_launch(name)) continue;
    traced.definition += fmt::format(",{}={}", percent_encoded(name), percent_encoded(value));
  }
  return traced;
}

bool is_own_definition(const std::string& definition) {
  return definition.starts_with(kOwn);
}

std::optional<NamedCase> case_of_trace(const std::string& definition,
                                       const std::map<std::string, int64_t>& axes) {
  if (!is_own_definition(definition)) return std::nullopt;
  const std::vector<std::string> parts = split_list(definition.substr(std::string(kOwn).size()));
  const auto op = percent_decoded(parts[0]);
  if (!op || op->empty()) return std::nullopt;
  NamedCase named{*op, {}};
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos) return std::nullopt;
    const auto name = percent_decoded(parts[i].substr(0, equals));
    const auto value = percent_decoded(parts[i].substr(equals + 1));
    const bool fresh = name && value && named.params.emplace(*name, *value).second;
    if (!fresh) return std::nullopt;
  }
  for (const auto& [name, value] : axes) {
    const auto [param, is_new] = named.params.emplace(name, std::to_string(value));
    if (is_new && !differs_from_launch_to_launch(name)) return std::nullopt;
    if (param->second != std::to_string(value)) return std::nullopt;
  }
  return named;
}

}  // namespace moegate
