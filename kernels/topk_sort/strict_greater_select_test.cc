// SPDX-License-Identifier: Apache-2.0
// Pins what the selection of AITER PR 3526 does, its two documented divergences included.
#include "kernels/topk_sort/strict_greater_select.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace moegate::topk_sort {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Selected {
  std::vector<int32_t> slot_of;  // 1 + slot, 0: not chosen
  std::vector<float> weight;
};

Selected select(const std::vector<float>& logits, int topk, bool over_chosen, float scale = 1) {
  Selected s{std::vector<int32_t>(logits.size(), 0),
             std::vector<float>(static_cast<size_t>(topk), -1)};
  strict_greater_select(
      static_cast<int>(logits.size()), topk, over_chosen, scale,
      [&](int e) { return logits[static_cast<size_t>(e)]; }, s.slot_of.data(), s.weight.data());
  return s;
}

TEST(StrictGreaterSelect, TakesTheLargestInDescendingOrder) {
  const Selected s = select({0, 2, 1, 3}, 2, true);
  EXPECT_EQ(s.slot_of, (std::vector<int32_t>{0, 2, 0, 1}));
  EXPECT_NEAR(s.weight[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(s.weight[1], 1 / (1 + std::exp(1.0)), 1e-6);
}

TEST(StrictGreaterSelect, TheLowerExpertWinsATie) {
  EXPECT_EQ(select({1, 5, 5, 5}, 2, true).slot_of, (std::vector<int32_t>{0, 1, 2, 0}));
}

TEST(StrictGreaterSelect, DividesByAllExpertsWithoutRenormAndAppliesTheScale) {
  const Selected s = select({0, 0, 0, 0}, 2, false, 2.5f);
  EXPECT_NEAR(s.weight[0], 2.5 / 4, 1e-6);
  EXPECT_NEAR(s.weight[1], 2.5 / 4, 1e-6);
}

TEST(StrictGreaterSelect, DivergenceFewFiniteLogitsRepeatExpertZeroAndLoseItsWeight) {
  // The contract wants experts 0, 2, 1 (lowest index first among -infinity), expert 0 in slot 0.
  const Selected s = select({4, -kInfinity, 3, -kInfinity}, 4, true);
  EXPECT_EQ(s.slot_of, (std::vector<int32_t>{4, 0, 2, 0}));  // slot 3 overwrote slot 0
  EXPECT_GT(s.weight[0], 0.5f);                              // the weight that nobody finds
  EXPECT_EQ(s.weight[3], 0);                                 // the one expert 0 is left with
}

TEST(StrictGreaterSelect, DivergenceNanIsNeverChosenEvenWhenNothingElseIsLeft) {
  // The contract counts NaN as -infinity and chooses expert 1 after expert 2.
  EXPECT_EQ(select({kNan, kNan, 1}, 3, true).slot_of, (std::vector<int32_t>{3, 0, 1}));
}

TEST(StrictGreaterSelect, DivergenceNanSpoilsTheSumOverAllExperts) {
  EXPECT_TRUE(std::isnan(select({kNan, 2, 1}, 1, false).weight[0]));
}

}  // namespace
}  // namespace moegate::topk_sort
