// SPDX-License-Identifier: Apache-2.0
// How often a history without a step is said to have one.
#include <gtest/gtest.h>

#include <vector>

#include "harness/base/rng.h"
#include "harness/base/stats.h"

namespace moegate::test {
namespace {

TEST(StepsSimulation, NoiseHasNoneMoreOftenThanTheNominalRate) {
  constexpr uint64_t kHistories = 400;
  int alarms = 0;
  for (uint64_t seed = 0; seed < kHistories; ++seed) {
    std::vector<double> values(24);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01 * random_normal(seed, 77, i);
    alarms += !change_points(values, 0.05).empty();
  }
  // 20 are expected; binomial(400, 0.05) is outside 8 ... 34 once in 500 times.
  EXPECT_GE(alarms, 8);
  EXPECT_LE(alarms, 34);
}

}  // namespace
}  // namespace moegate::test
