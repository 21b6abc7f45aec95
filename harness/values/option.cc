// SPDX-License-Identifier: Apache-2.0
#include "harness/values/option.h"

#include <algorithm>

namespace moegate {

double parse_seconds(const std::string& flag, const std::string& text) {
  const auto number = leading_number(text);
  const std::string unit = number ? number->rest : "?";
  const double factor = unit == "s"                    ? 1
                        : unit == "ms"                 ? 1e-3
                        : unit == "m" || unit == "min" ? 60
                        : unit == "h"                  ? 3600
                                                       : 0;
  if (unit.empty()) {
    usage_error("{} '{}' has no unit; write {}s for seconds or {}min for minutes", flag, text, text,
                text);
  }
  if (factor == 0 || !(number->value > 0)) {
    usage_error("{} '{}' is not a time; write 500ms, 2s, 1.5min or 2h", flag, text);
  }
  constexpr double kWeek = 7 * 24 * 3600;
  const double seconds = number->value * factor;
  if (!(seconds <= kWeek)) usage_error("{} '{}' is longer than a week; use less", flag, text);
  return seconds;
}

void at_least(const std::string& flag, double value, double least) {
  if (!(value >= least)) usage_error("{} {}; use at least {}", flag, value, least);
}

void within(const std::string& flag, double value, double least, double most) {
  at_least(flag, value, least);
  if (!(value <= most)) usage_error("{} {}; use at most {}", flag, value, most);
}

namespace option {

void check_range(const FlagText& flag, double value) {
  if (flag.least == 0 && flag.most == 0) return;
  within("--" + std::string(flag.name), value, flag.least, flag.most);
}

double parse_real(const FlagText& flag, const std::string& text) {
  const auto number = leading_number(text);
  if (!number || !number->rest.empty()) usage_error("--{} '{}' is no number", flag.name, text);
  check_range(flag, number->value);
  return number->value;
}

void check_choice(const FlagText& flag, const std::string& text) {
  const std::vector<std::string> choices = split_list(flag.choices);
  if (std::ranges::count(choices, text) > 0) return;
  const std::vector<std::string> first(choices.begin(), choices.end() - 1);
  usage_error("--{} '{}'; use {} or {}", flag.name, text, fmt::join(first, ", "), choices.back());
}

}  // namespace option
}  // namespace moegate
