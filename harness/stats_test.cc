// SPDX-License-Identifier: Apache-2.0
#include "harness/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace moegate {
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

}  // namespace
}  // namespace moegate
