// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/device_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
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

/// What rows differ by from the middle beside what their processes spread by.
double own_sd(std::span<const OnTwoDevices> rows, double middle) {
  std::vector<double> offs, variances;
  for (const OnTwoDevices& row : rows) {
    offs.push_back(row.log_ratio - middle);
    variances.push_back(row.se * row.se);
  }
  const double sd = robust_sd(std::move(offs));
  return std::max(kQuietest, std::sqrt(std::max(0.0, sd * sd - median(variances))));
}

}  // namespace

std::string DeviceSpread::text() const {
  return fmt::format("the devices differ by {}, a row by {:.1f} % more or less, as {} rows{} show",
                     percent(std::expm1(shift)), 100 * std::expm1(sd), rows,
                     of_same_code ? " of the same code" : "");
}

double DeviceSpread::sd_of(const std::string& op) const {
  const auto found = sd_of_op.find(op);
  return found == sd_of_op.end() ? sd : found->second;
}

std::optional<DeviceSpread> device_spread(std::span<const OnTwoDevices> rows, double margin) {
  DeviceSpread spread;
  const auto same = static_cast<size_t>(std::ranges::count_if(rows, &OnTwoDevices::same_code));
  spread.of_same_code = same >= kFewestRows;
  std::vector<OnTwoDevices> used;
  for (const OnTwoDevices& row : rows) {
    if (!spread.of_same_code || row.same_code) used.push_back(row);
  }
  spread.rows = used.size();
  if (spread.rows < kFewestRows) return std::nullopt;
  std::vector<double> ratios;
  for (const OnTwoDevices& row : used) ratios.push_back(row.log_ratio);
  const double middle = median(ratios);
  spread.df = kTailDf;
  spread.shift = spread.of_same_code ? middle : std::clamp(middle, -margin, margin);
  spread.sd = own_sd(used, middle);
  std::map<std::string, std::vector<OnTwoDevices>> by_op;
  for (OnTwoDevices& row : used) by_op[row.op].push_back(std::move(row));
  for (const auto& [op, of_op] : by_op) {
    if (of_op.size() >= kFewestRows) spread.sd_of_op[op] = own_sd(of_op, middle);
  }
  return spread;
}

std::optional<DeviceSpread> device_spread(const Sides& base, const Sides& head, double margin) {
  std::vector<OnTwoDevices> rows;
  for (const auto& [id, h] : head) {
    const auto b = base.find(id);
    if (b == base.end() || !b->second.measured() || !h.measured()) continue;
    const Evidence &then = b->second.level, &now = h.level;
    const double se =
        std::sqrt(then.sd_log * then.sd_log / then.n + now.sd_log * now.sd_log / now.n);
    rows.push_back({.op = id.op(),
                    .log_ratio = now.mean_log - then.mean_log,
                    .se = se,
                    .same_code = same_code(b->second, h)});
  }
  return device_spread(rows, margin);
}

}  // namespace moegate
