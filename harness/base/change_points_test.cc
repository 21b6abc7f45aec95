// SPDX-License-Identifier: Apache-2.0
#include "harness/base/change_points.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "harness/base/rng.h"

namespace moegate {
namespace {

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
}  // namespace moegate
