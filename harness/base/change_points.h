// SPDX-License-Identifier: Apache-2.0
// Where a series of numbers changed its level for good: E-divisive, a non-parametric method that
// needs no model of the noise (Matteson & James 2014, JASA 109:334; used on performance histories
// by Daly et al., ICPE 2020).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace moegate {

struct ChangePoint {
  size_t at = 0;      // index of the first value after the change
  double before = 0;  // median since the previous change
  double after = 0;   // median until the next one
  double p = 1;       // of the permutation test that accepted it
};

/// Fewest values between two changes: one or two outliers are no level.
constexpr size_t kFewestBetweenChanges = 3;

/// The changes of level, in order. Splits at the largest energy statistic of all segments for as
/// long as a permutation test within the segments (999 permutations, fixed seed) gives p <= alpha;
/// a series without change yields one with a probability of alpha. What so few values cannot show
/// at that level is not found: 0.01 takes about ten.
std::vector<ChangePoint> change_points(std::span<const double> values, double alpha = 0.01);

}  // namespace moegate
