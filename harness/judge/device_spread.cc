// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/device_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/base/stats.h"
#include "harness/judge/gate.h"

namespace moegate {
namespace {

constexpr size_t kFewestRows = 20;
constexpr double kMadToSd = 1.4826;  // of a normal sample

/// Of all rows. Their tails are longer than a normal sample's: a few rows meet another placement in
/// memory or another clock. Degrees of freedom that keep the largest of 300 unchanged rows.
constexpr double kTailDf = 8;

/// A quiet estimate is no promise for every row.
constexpr double kQuietest = 0.002;

/// The sd that the middle half spreads by, or the outer tenths where that is more.
double robust_sd(std::vector<double> offs) {
  for (double& x : offs) x = std::abs(x);
  std::ranges::sort(offs);
  constexpr double kNine = 0.9, kZNine = 1.6449;  // nine tenths of a normal sample are within
  const auto nine = static_cast<size_t>(kNine * static_cast<double>(offs.size() - 1));
  return std::max(kMadToSd * median(offs), offs[nine] / kZNine);
}

}  // namespace

std::string DeviceSpread::text() const {
  return fmt::format("the devices differ by {}, a row by {:.1f} % more or less, as {} rows{} show",
                     percent(std::expm1(shift)), 100 * std::expm1(sd), rows,
                     of_same_code ? " of the same code" : "");
}

std::optional<DeviceSpread> device_spread(std::span<const OnTwoDevices> rows, double margin) {
  DeviceSpread spread;
  const auto same = static_cast<size_t>(std::ranges::count_if(rows, &OnTwoDevices::same_code));
  spread.of_same_code = same >= kFewestRows;
  std::vector<double> ratios, variances;
  for (const OnTwoDevices& row : rows) {
    if (spread.of_same_code && !row.same_code) continue;
    ratios.push_back(row.log_ratio);
    variances.push_back(row.se * row.se);
  }
  spread.rows = ratios.size();
  if (spread.rows < kFewestRows) return std::nullopt;
  const double middle = median(ratios);
  std::vector<double> offs;
  for (const double ratio : ratios) offs.push_back(ratio - middle);
  const double sd = robust_sd(offs);
  spread.sd = std::max(kQuietest, std::sqrt(std::max(0.0, sd * sd - median(variances))));
  spread.df = kTailDf;
  spread.shift = spread.of_same_code ? middle : std::clamp(middle, -margin, margin);
  return spread;
}

std::optional<DeviceSpread> device_spread(const Sides& base, const Sides& head, double margin) {
  std::vector<OnTwoDevices> rows;
  for (const auto& [id, h] : head) {
    const Side* b = find_or_null(base, id);
    if (!b || !b->measured() || !h.measured()) continue;
    const Evidence &then = b->level, &now = h.level;
    const double se =
        std::sqrt(then.sd_log * then.sd_log / then.n + now.sd_log * now.sd_log / now.n);
    rows.push_back({now.mean_log - then.mean_log, se, same_code(*b, h)});
  }
  return device_spread(rows, margin);
}

}  // namespace moegate
