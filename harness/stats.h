// SPDX-License-Identifier: Apache-2.0
// Pure functions on arrays of numbers. Nothing here knows what they measure.
#pragma once

#include <span>
#include <vector>

namespace moegate {

struct Interval {
  double low;
  double high;
};

/// Middle value, or the mean of the two middle ones. Throws std::invalid_argument when empty.
double median(std::span<const double> values);

/// Mean without the lowest and highest `share` of the values (10 % of each tail by default), robust
/// to outliers and finer than the timer's tick, which a raw median is not.
double trimmed_mean(std::span<const double> values, double share = 0.1);

/// Confidence interval of the trimmed mean from the winsorised variance (Yuen 1974). Narrows
/// smoothly where values are ticks of a timer or a mixture of two levels, and the median jumps from
/// one to the other.
Interval trimmed_mean_interval(std::span<const double> values, double share = 0.1,
                               double confidence = 0.95);

double mean(std::span<const double> values);
/// Sample standard deviation (n - 1); 0 for fewer than two values.
double stddev(std::span<const double> values);

/// Distribution-free confidence interval of the median from order statistics (binomial; Hahn &
/// Meeker 1991, 5.2). With too few values for the confidence it is [min, max].
Interval median_interval(std::span<const double> values, double confidence = 0.95);

/// Holm's step-down adjusted p-values (Holm 1979), in the order given.
std::vector<double> holm(std::span<const double> p);

/// exp(mean(log(values))). Throws std::invalid_argument when empty or not positive.
double geometric_mean(std::span<const double> values);

}  // namespace moegate
