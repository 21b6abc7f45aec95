// SPDX-License-Identifier: Apache-2.0
#include "harness/report/level_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/terminal.h"

namespace moegate {
namespace {

constexpr double kLeastSpan = 0.05;  // in logs: what is less is drawn nearly flat

}  // namespace

std::string level_line(const std::vector<double>& logs, const std::string& unit) {
  if (logs.empty()) return "nothing";
  const auto [low, high] = std::ranges::minmax(logs);
  return fmt::format("{} {:.5g} … {:.5g} {}, newest at the right", sparkline(logs, kLeastSpan),
                     std::exp(low), std::exp(high), unit);
}

std::string level_line(const LevelChart& chart) {
  std::vector<double> logs;
  for (const LevelChart::Point& point : chart.points) logs.push_back(point.log);
  return level_line(logs, chart.unit);
}

}  // namespace moegate
