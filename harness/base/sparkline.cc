// SPDX-License-Identifier: Apache-2.0
#include "harness/base/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace moegate {

std::string sparkline(const std::vector<double>& values, double least_span) {
  constexpr std::array kBars = {"▁", "▂", "▃", "▅", "▇"};
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double v) { return std::isfinite(v); });
  if (finite.empty()) return std::string(values.size(), ' ');
  const auto [low, high] = std::ranges::minmax(finite);
  const double span = std::max(high - low, least_span);
  std::string line;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      line += " ";
      continue;
    }
    const double share = span > 0 ? (v - low) / span : 0;
    const auto bar = std::min(static_cast<size_t>(share * kBars.size()), kBars.size() - 1);
    line += kBars.at(bar);
  }
  return line;
}

}  // namespace moegate
