// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/device_spread.h"

#include <gtest/gtest.h>

#include <vector>

#include "harness/base/rng.h"

namespace moegate::test {
namespace {

constexpr double kMargin = 0.01;

std::vector<OnTwoDevices> rows(size_t n, double shift, double sd, bool same_code = false) {
  std::vector<OnTwoDevices> all(n);
  for (size_t i = 0; i < n; ++i) {
    all[i] = {shift + sd * random_normal(1, 0, i), 0, same_code};
  }
  return all;
}

TEST(DeviceSpread, IsTheRowsOwn) {
  const auto spread = device_spread(rows(400, -0.004, 0.007), kMargin);
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->shift, -0.004, 0.001);
  EXPECT_NEAR(spread->sd, 0.007, 0.001);
  EXPECT_EQ(spread->rows, 400u);
  EXPECT_FALSE(spread->of_same_code);
}

TEST(DeviceSpread, WhatGotSlowerDoesNotCount) {
  auto all = rows(400, 0, 0.007);
  for (size_t i = 0; i < 20; ++i) all[i].log_ratio += 0.5;
  const auto spread = device_spread(all, kMargin);
  EXPECT_NEAR(spread->shift, 0, 0.002);
  EXPECT_LT(spread->sd, 0.01);
}

TEST(DeviceSpread, RowsOfTheSameCodeSayItAlone) {
  auto all = rows(50, 0.03, 0.005, true);
  for (const OnTwoDevices& changed : rows(400, 0.2, 0.05)) all.push_back(changed);
  const auto spread = device_spread(all, kMargin);
  EXPECT_TRUE(spread->of_same_code);
  EXPECT_EQ(spread->rows, 50u);
  EXPECT_NEAR(spread->shift, 0.03, 0.002) << "no change of code made it, so all of it counts";
  EXPECT_NEAR(spread->sd, 0.005, 0.002);
}

TEST(DeviceSpread, ACommonLossIsNotTheDevices) {
  EXPECT_EQ(device_spread(rows(400, 0.05, 0.005), kMargin)->shift, kMargin);
  EXPECT_EQ(device_spread(rows(400, -0.05, 0.005), kMargin)->shift, -kMargin);
}

TEST(DeviceSpread, FewRowsSayNothing) {
  EXPECT_FALSE(device_spread(rows(19, 0, 0.007), kMargin));
  auto all = rows(19, 0, 0.007, true);
  for (const OnTwoDevices& other : rows(30, 0, 0.007)) all.push_back(other);
  EXPECT_FALSE(device_spread(all, kMargin)->of_same_code);
}

TEST(DeviceSpread, TheNoiseOfTheProcessesIsTakenOff) {
  auto all = rows(400, 0, 0.01);
  for (OnTwoDevices& row : all) row.se = 0.008;
  EXPECT_NEAR(device_spread(all, kMargin)->sd, 0.006, 0.002);
  for (OnTwoDevices& row : all) row.se = 0.02;
  EXPECT_GT(device_spread(all, kMargin)->sd, 0) << "never certain";
}

}  // namespace
}  // namespace moegate::test
