// SPDX-License-Identifier: Apache-2.0
#include "harness/base/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "harness/base/rng.h"

namespace moegate::test {
namespace {

using Values = std::vector<double>;

/// 1, 2, … n, so that a value is its rank.
Values ranks(size_t n) {
  Values v(n);
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

TEST(Stats, Median) {
  EXPECT_EQ(median(Values{7}), 7);
  EXPECT_EQ(median(Values{3, 1, 2}), 2);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(Stats, TrimmedMeanDropsBothTails) {
  Values v = ranks(10);
  v[9] = 1e9;
  v[0] = -1e9;
  EXPECT_EQ(trimmed_mean(v), 5.5);
  EXPECT_EQ(trimmed_mean(Values{1, 2, 9}), 4);  // 10 % of 3 is no value
  EXPECT_EQ(trimmed_mean(Values{1, 2, 9}, 0.34), 2);
  EXPECT_EQ(trimmed_mean(ranks(7), 0), 4);
  EXPECT_EQ(trimmed_mean(Values{5}, 0.49), 5);
  EXPECT_THROW(trimmed_mean({}), std::invalid_argument);
  EXPECT_THROW(trimmed_mean(ranks(4), 0.5), std::invalid_argument);
}

TEST(Stats, TrimmedMeanCutsExactShares) {
  Values v(100, 1.0);  // 0.29 * 100 is 28.999… in double
  for (size_t i = 0; i < 29; ++i) v[i] = 1000;
  EXPECT_EQ(trimmed_mean(v, 0.29), 1);
}

// Without trimming it is Student's interval: 3 +- t(0.975, 4) * sqrt(2.5 / 5). The trimmed one
// agrees with Yuen's formula by hand: winsorised 2 2 3 4 4 has sd 1, so 3 +- t(0.975, 2) * sqrt(5)
// / 3.
TEST(Stats, TrimmedMeanInterval) {
  const Interval plain = trimmed_mean_interval(Values{1, 2, 3, 4, 5}, 0);
  EXPECT_NEAR(plain.low, 3 - 2.7764451 * std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(plain.high, 3 + 2.7764451 * std::sqrt(0.5), 1e-6);
  const Interval trimmed = trimmed_mean_interval(Values{1, 2, 3, 4, 1000}, 0.2);
  EXPECT_NEAR(trimmed.high, 3 + 4.3026527 * std::sqrt(5.0) / 3, 1e-6);
  EXPECT_EQ(trimmed_mean_interval(Values{7}).high, 7);
}

TEST(Stats, MeanAndDeviation) {
  EXPECT_EQ(mean(Values{2, 4, 4, 4, 5, 5, 7, 9}), 5);
  EXPECT_DOUBLE_EQ(stddev(Values{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
  EXPECT_EQ(stddev(Values{3}), 0);
  EXPECT_EQ(stddev({}), 0);
  EXPECT_DOUBLE_EQ(stddev(Values{1e9 + 1, 1e9 + 2, 1e9 + 3}), 1);
  EXPECT_THROW(mean({}), std::invalid_argument);
}

TEST(Stats, MedianIntervalRanks) {
  // Ranks for 95 % from the binomial distribution: Hahn & Meeker 1991, table A.15 and hand sums.
  struct Known {
    size_t n;
    double low, high;
  };
  for (const Known k :
       {Known{6, 1, 6}, Known{8, 1, 8}, Known{9, 2, 8}, Known{10, 2, 9}, Known{15, 4, 12},
        Known{20, 6, 15}, Known{30, 10, 21}, Known{50, 18, 33}, Known{100, 40, 61}}) {
    const Interval interval = median_interval(ranks(k.n));
    EXPECT_EQ(interval.low, k.low) << k.n;
    EXPECT_EQ(interval.high, k.high) << k.n;
  }
}

TEST(Stats, MedianIntervalWithTooFewValuesIsTheRange) {
  for (size_t n = 1; n <= 5; ++n) {
    const Interval interval = median_interval(ranks(n));
    EXPECT_EQ(interval.low, 1);
    EXPECT_EQ(interval.high, static_cast<double>(n));
  }
}

TEST(Stats, MedianIntervalConfidence) {
  EXPECT_EQ(median_interval(ranks(20), 0.99).low, 4);  // 99.74 %; ranks 5, 16 reach 98.8 %
  EXPECT_EQ(median_interval(ranks(20), 0.5).low, 8);   // 73.7 %; 9, 12 reach 49.7 %
  EXPECT_EQ(median_interval(ranks(2), 0.5).low, 1);    // exactly 50 %
  EXPECT_EQ(median_interval(Values(100, 3.0)).high, 3);
  EXPECT_THROW(median_interval({}), std::invalid_argument);
  EXPECT_THROW(median_interval(ranks(5), 1), std::invalid_argument);
}

TEST(Stats, MedianIntervalOfManyValues) {
  // Beyond n = 1074, 2^-n underflows; the normal approximation gives n/2 -+ 0.98 sqrt(n).
  const Interval interval = median_interval(ranks(100000));
  EXPECT_NEAR(interval.low, 50000 - 309.9, 2);
  EXPECT_NEAR(interval.high, 50000 + 310.9, 2);
}

TEST(Stats, HolmKnownAnswer) {
  const Values adjusted = holm(Values{0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);  // not 0.04: never below a smaller p's
  EXPECT_EQ(holm(Values{0.9, 0.8}), (Values{1, 1}));
  EXPECT_EQ(holm(Values{0.2}), Values{0.2});
  EXPECT_TRUE(holm({}).empty());
}

TEST(Stats, GeometricMean) {
  EXPECT_DOUBLE_EQ(geometric_mean(Values{0.5, 2}), 1);
  EXPECT_DOUBLE_EQ(geometric_mean(Values{1, 10, 100}), 10);
  EXPECT_NEAR(geometric_mean(Values(50, 1e300)) / 1e300, 1, 1e-9);  // the product overflows
  EXPECT_THROW(geometric_mean({}), std::invalid_argument);
  EXPECT_THROW(geometric_mean(Values{1, 0}), std::invalid_argument);
  EXPECT_THROW(geometric_mean(Values{1, std::nan("")}), std::invalid_argument);
}

TEST(Stats, GeometricMeanInterval) {
  // Logs 0, 1, 2 in units of log 2; t(0.975, 2) = 4.3026527.
  const double reach = 4.3026527 * std::log(2) / std::sqrt(3);
  const Interval interval = geometric_mean_interval(Values{4, 1, 2});
  EXPECT_NEAR(interval.low, 2 * std::exp(-reach), 1e-6);
  EXPECT_NEAR(interval.high, 2 * std::exp(reach), 1e-5);
  EXPECT_GT(geometric_mean_interval(Values{4, 1, 2}, 0.9).low, interval.low);
  EXPECT_DOUBLE_EQ(geometric_mean_interval(Values{7}).high, 7);
  EXPECT_THROW(geometric_mean_interval({}), std::invalid_argument);
  EXPECT_THROW(geometric_mean_interval(Values{1, -1}), std::invalid_argument);
}

TEST(Stats, HodgesLehmann) {
  EXPECT_EQ(hodges_lehmann(Values{5}), 5);
  EXPECT_EQ(hodges_lehmann(Values{1, 2, 4, 8}), 3.5);  // of 1 1.5 2 2.5 3 4 4.5 5 6 8
  // Hollander & Wolfe 1973, table 3.1: depression scale before and after a tranquilizer.
  EXPECT_NEAR(
      hodges_lehmann(Values{0.952, -0.147, 1.022, 0.430, 0.620, 0.590, 0.490, -0.080, 0.010}), 0.46,
      1e-12);
  EXPECT_LT(hodges_lehmann(Values{1, 2, 3, 4, 5, 6, 7, 8, 1e9, 1e9}), 9);
  EXPECT_THROW(hodges_lehmann({}), std::invalid_argument);
}

// Expected values by bisection of trigamma's series, which shares nothing with Newton's method.
TEST(Stats, PriorIsSmyths) {
  const VariancePrior prior = fit_prior(Values{0.5, 1, 2, 4, 8, 0.25}, 4, 0);
  EXPECT_NEAR(prior.df, 2.777399311341313, 1e-9);
  EXPECT_NEAR(prior.variance, 1.2405236675256097, 1e-9);
  const VariancePrior wild = fit_prior(Values{1e-4, 1, 1e4}, 4, 0);
  EXPECT_NEAR(wild.df, 0.21983282010475183, 1e-9);
  EXPECT_NEAR(wild.variance / 0.0008857664850264289, 1, 1e-6);
}

TEST(Stats, VariancesThatAgreeHaveAnInfinitePrior) {
  const VariancePrior prior = fit_prior(Values{1, 1.1, 0.9, 1.05}, 4, 0);
  EXPECT_TRUE(std::isinf(prior.df));
  EXPECT_NEAR(prior.variance, 1.3231930628155808, 1e-9);
}

TEST(Stats, PriorIgnoresAFewForeignVariances) {
  Values logs = ranks(20);
  for (double& x : logs) x = std::exp((x - 10.5) / 5);
  const VariancePrior prior = fit_prior(logs, 10);  // one winsorised at each end
  EXPECT_NEAR(prior.df, 2.2689819160483733, 1e-9);
  EXPECT_NEAR(prior.variance, 0.6714873233016903, 1e-9);
  logs[0] = 0;
  logs[19] = 1e9;
  EXPECT_DOUBLE_EQ(fit_prior(logs, 10).df, prior.df);
  EXPECT_LT(fit_prior(logs, 10, 0).df, 0.5);
}

TEST(Stats, PriorOfNothing) {
  EXPECT_THROW(fit_prior(Values{1}, 4), std::invalid_argument);
  EXPECT_THROW(fit_prior(Values{1, 2}, 0), std::invalid_argument);
  EXPECT_THROW(fit_prior(Values{1, 2}, 4, 0.3), std::invalid_argument);
  EXPECT_THROW(fit_prior(Values{0, 0, 0, 1}, 4), std::invalid_argument);
}

std::vector<double> noise(uint64_t seed, size_t n, double sd) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = sd * random_normal(seed, 77, i);
  return values;
}

void shift(std::vector<double>& values, size_t first, size_t last, double by) {
  for (size_t i = first; i < last; ++i) values[i] += by;
}

TEST(ChangePoints, AStepIsFoundWhereItIs) {
  std::vector<double> values = noise(1, 30, 0.003);
  shift(values, 17, 30, 0.05);
  const auto found = change_points(values);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, 17u);
  EXPECT_NEAR(found[0].before, 0, 0.002);
  EXPECT_NEAR(found[0].after, 0.05, 0.002);
  EXPECT_EQ(found[0].p, 0.001);  // no permutation of 999 is as good
}

TEST(ChangePoints, TwoStepsAreBothFoundUpAndBackOrOnceMoreUp) {
  for (const double second : {-0.05, 0.05}) {
    std::vector<double> values = noise(2, 45, 0.003);
    shift(values, 15, 45, 0.05);
    shift(values, 30, 45, second);
    const auto found = change_points(values);
    ASSERT_EQ(found.size(), 2u) << second;
    EXPECT_EQ(found[0].at, 15u) << second;
    EXPECT_EQ(found[1].at, 30u) << second;
    EXPECT_NEAR(found[1].before, 0.05, 0.002);
    EXPECT_NEAR(found[1].after, 0.05 + second, 0.002);
  }
}

TEST(ChangePoints, OneOutlierIsNoStepWhereverItIs) {
  for (size_t at = 0; at < 24; ++at) {
    std::vector<double> values = noise(3, 24, 0.003);
    values[at] += 0.5;
    EXPECT_TRUE(change_points(values).empty()) << at;
  }
}

TEST(ChangePoints, AnOutlierDoesNotHideAStep) {
  std::vector<double> values = noise(4, 40, 0.003);
  shift(values, 20, 40, 0.03);
  values[7] += 0.1;
  const auto found = change_points(values);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, 20u);
}

TEST(ChangePoints, TooFewOrEqualValuesHaveNone) {
  EXPECT_TRUE(change_points({}).empty());
  const std::vector<double> five = {0, 0, 0, 9, 9};
  EXPECT_TRUE(change_points(five, 1).empty());
  EXPECT_TRUE(change_points(std::vector<double>(50, 3.0)).empty());
  // Without noise: 10 choose 5 arrangements, of which two are as good as this one.
  const std::vector<double> ten = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2};
  const auto found = change_points(ten);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, 5u);
}

TEST(ChangePoints, ARampIsNotTakenForNoise) {
  std::vector<double> values(40);
  std::iota(values.begin(), values.end(), 0.0);
  EXPECT_FALSE(change_points(values).empty());
}

}  // namespace
}  // namespace moegate::test
