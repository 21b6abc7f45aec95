// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/measure.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(EnoughSamples, SlowRowsNeedFewerInTheirTime) {
  EXPECT_EQ(enough_samples({.min_samples = 200}, false), 200);
  EXPECT_EQ(enough_samples({.min_samples = 200}, true), 50)
      << "their interval says how good they are";
  EXPECT_EQ(enough_samples({.min_samples = 20}, true), 20);
}

}  // namespace
}  // namespace moegate
