// SPDX-License-Identifier: Apache-2.0
// A row of a baseline file as text. Only for baseline_text.cc.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/baseline/baseline.h"

namespace moegate {

/// Where a parse error is, so that its message names file and line.
struct TextPlace {
  const std::filesystem::path& path;
  int line = 0;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{}:{}: {}", path.string(), line, fmt::format(format, std::forward<Args>(args)...));
  }
};

/// "name=text", or two words of the header.
struct TextValue {
  const TextPlace& place;
  std::string_view name, text;

  double amount() const {
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0) || !std::isfinite(*number)) {
      place.fail("{}={} is not a number of 0 or more", name, text);
    }
    return *number;
  }
  int count() const {
    const double value = amount();
    if (value != std::floor(value) || value > 1e6) place.fail("{}={} is not a count", name, text);
    return static_cast<int>(value);
  }
  /// As many as there are places, with commas between them.
  void amounts(std::initializer_list<double*> places) const {
    std::string_view rest = text;
    for (double* to : places) {
      const std::string_view one = rest.substr(0, rest.find(','));
      *to = TextValue{place, name, one}.amount();
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    if (!rest.empty()) place.fail("{}={} has more than {} numbers", name, text, places.size());
  }
  /// "0.12%" as a share.
  double percent() const {
    if (!text.ends_with('%')) place.fail("{}={} is not in percent", name, text);
    return TextValue{place, name, text.substr(0, text.size() - 1)}.amount() / 100;
  }
};

struct ParsedRow {
  BaselineRow row;
  /// Counts the words that state it.
  BeyondRounding& rounding() {
    ++row.rounding.graded;
    return row.rounding;
  }
  bool retired = false;
};

/// Fails at the place for anything that it does not know. `ratios`: of what the file's levels are.
ParsedRow parse_row(const TextPlace& place, std::string_view line, bool ratios);
void format_row(const BaselineRow& row, bool ratios, bool retired, std::string& text);

}  // namespace moegate
