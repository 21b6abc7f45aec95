// SPDX-License-Identifier: Apache-2.0
#include "harness/base/sparkline.h"

#include <gtest/gtest.h>

#include <limits>

namespace moegate {
namespace {

TEST(Sparkline, EachValueHasItsHeight) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 0}, 0), "▁▂▃▅▇▁");
}

TEST(Sparkline, NoiseIsNoMountain) {
  EXPECT_EQ(sparkline({1, 1.01, 1}, 0.1), "▁▁▁");
  EXPECT_EQ(sparkline({5, 5}, 0), "▁▁");
}

TEST(Sparkline, WhatIsNotFiniteIsABlank) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(sparkline({0, none, 4}, 0), "▁ ▇");
  EXPECT_EQ(sparkline({none}, 0), " ");
  EXPECT_EQ(sparkline({}, 0), "");
}

}  // namespace
}  // namespace moegate
