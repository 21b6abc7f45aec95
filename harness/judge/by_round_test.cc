// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/by_round.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(ByRound, IsInTheOrderOfRoundsWhateverOrderTheyComeIn) {
  ByRound values = {{3, 0.3}, {1, 0.1}};
  values[2] = 0.2;
  values[3] = 0.33;
  EXPECT_EQ(values, (ByRound{{1, 0.1}, {2, 0.2}, {3, 0.33}}));
  EXPECT_EQ(values.begin()->first, 1);
  EXPECT_EQ(values.size(), 3u);
}

TEST(ByRound, KnowsWhichRoundsItHas) {
  ByRound values = {{1, 0.1}, {4, 0.4}};
  EXPECT_EQ(values.find(4)->second, 0.4);
  EXPECT_EQ(values.at(4), 0.4);
  EXPECT_THROW(values.at(2), std::out_of_range);
  EXPECT_EQ(values.find(2), values.end());
  EXPECT_EQ(values.find(5), values.end());
  EXPECT_EQ(values.count(1), 1u);
  values.erase(1);
  values.erase(7);
  EXPECT_EQ(values, (ByRound{{4, 0.4}}));
  values.clear();
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace moegate
