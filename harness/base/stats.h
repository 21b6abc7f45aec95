// SPDX-License-Identifier: Apache-2.0
// This file has pure functions on arrays of numbers. Nothing here knows what they measure.
#pragma once

#include <cstddef>
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

/// The 97.5 % quantile of Student's t: half of a 95 % interval, in standard errors. Throws
/// std::domain_error unless df > 0.
double student_975(double df);

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

/// Student's interval of the geometric mean, on the logarithms. One value is its own interval.
/// Throws std::invalid_argument when empty or not positive.
Interval geometric_mean_interval(std::span<const double> values, double confidence = 0.95);

/// Hodges-Lehmann estimate of the centre: the median of all means of two values, each with itself
/// too (Hodges & Lehmann 1963). Ignores up to 29 % of wild values and costs 5 % against the mean
/// where there are none. O(n^2). Throws std::invalid_argument when empty.
double hodges_lehmann(std::span<const double> values);

/// Variances drawn around `variance`: variance / each ~ chi2(df) / df. A df of infinity means that
/// all of them are the same.
struct VariancePrior {
  double df;
  double variance;
};

/// The prior that sample variances with `df` degrees of freedom each were drawn from, by the
/// moments of their logarithms (Smyth 2004, section 6.2; limma's fitFDist). The share `tails` at
/// each end is winsorised first, so that a few foreign variances do not widen the prior. The spread
/// that this takes away is added back as for a normal sample. A zero counts as 1e-5 of the median.
/// Throws std::invalid_argument for fewer than two variances, df <= 0, tails not in [0, 0.25], or
/// when most variances are zero.
VariancePrior fit_prior(std::span<const double> variances, double df, double tails = 0.05);

// Where a series of numbers changed its level for good: E-divisive, a non-parametric method that
// needs no model of the noise (Matteson & James 2014, JASA 109:334; used on performance histories
// by Daly et al., ICPE 2020).

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
