// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/steps.h"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>

namespace moegate {
namespace {

/// The probability of such means, or ones further apart, where nothing changed.
double same_mean(std::span<const double> before, std::span<const double> after) {
  const auto squares = [](std::span<const double> part) {
    const double sd = stddev(part);
    return sd * sd * static_cast<double>(part.size() - 1);
  };
  const auto n = static_cast<double>(before.size()), m = static_cast<double>(after.size());
  const double df = n + m - 2;
  const double se = std::sqrt((squares(before) + squares(after)) / df * (1 / n + 1 / m));
  const double step = std::abs(mean(after) - mean(before));
  if (se == 0) return step > 0 ? 0 : 1;
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(df), step / se));
}

}  // namespace

std::vector<ChangePoint> steps_of_code(std::span<const double> logs,
                                       const std::vector<size_t>& code_changes,
                                       std::span<const ChangePoint> found) {
  constexpr double kAlpha = 0.01;
  std::vector<size_t> ends = {0};  // of stretches of one code
  ends.insert(ends.end(), code_changes.begin(), code_changes.end());
  ends.push_back(logs.size());
  std::vector<ChangePoint> steps;
  for (size_t k = 1; k + 1 < ends.size(); ++k) {
    const auto before = logs.subspan(ends[k - 1], ends[k] - ends[k - 1]);
    const auto after = logs.subspan(ends[k], ends[k + 1] - ends[k]);
    const bool known = std::ranges::any_of(found, [&](const ChangePoint& change) {
      return change.at > ends[k - 1] && change.at < ends[k + 1];
    });
    if (known || before.size() < 2 || after.size() < 2) continue;
    const double p = same_mean(before, after);
    if (p <= kAlpha) steps.push_back({ends[k], median(before), median(after), p});
  }
  return steps;
}

std::vector<ChangePoint> steps_in(std::span<const double> logs,
                                  const std::vector<size_t>& code_changes) {
  std::vector<ChangePoint> steps = change_points(logs);
  std::ranges::copy(steps_of_code(logs, code_changes, steps), std::back_inserter(steps));
  std::ranges::sort(steps, {}, &ChangePoint::at);
  return steps;
}

std::string no_step_in(size_t runs) {
  constexpr size_t kEnough = 10;  // change_points() finds none in fewer
  return runs >= kEnough
             ? "No step found."
             : fmt::format(
                   "{} runs are too few to find a step where the code did not change; {} are "
                   "enough.",
                   runs, kEnough);
}

}  // namespace moegate
