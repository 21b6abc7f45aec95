// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/stopping.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(StoppingRule, SlowRowsNeedFewerInTheirTime) {
  const StoppingRule rule({.min_samples = 200}, Backend::cuda);
  EXPECT_FALSE(rule.are_enough(199, false));
  EXPECT_TRUE(rule.are_enough(200, false));
  EXPECT_TRUE(rule.are_enough(50, true)) << "their interval says how good they are";
  EXPECT_FALSE(rule.are_enough(49, true));
  EXPECT_TRUE(StoppingRule({.min_samples = 20}, Backend::cuda).are_enough(20, true));
}

TEST(StoppingRule, TimeOrNumberIsSpent) {
  const StoppingRule rule({.max_samples = 300, .budget_s = 0.5}, Backend::host);
  EXPECT_FALSE(rule.is_spent(299, 0.5));
  EXPECT_TRUE(rule.is_spent(300, 0));
  EXPECT_TRUE(rule.is_spent(0, 0.51));
}

TEST(StoppingRule, ABatchIsAbout100SamplesOr12Milliseconds) {
  const StoppingRule rule({.max_samples = 100000}, Backend::cuda);
  EXPECT_EQ(rule.next_batch(0, 8, 0, 0.5), 100);
  EXPECT_EQ(rule.next_batch(100, 8, 1e-3, 0), 75);
  EXPECT_EQ(rule.next_batch(100, 8, 60e-6, 0.5), 200);
  EXPECT_EQ(rule.next_batch(100, 8, 1e-6, 0.5), 400);
}

TEST(StoppingRule, ABatchHoldsEveryProblemAndNoMoreThanAreLeft) {
  const StoppingRule rule({.max_samples = 120}, Backend::cuda);
  EXPECT_EQ(rule.next_batch(100, 8, 0, 0.5), 20);
  EXPECT_EQ(rule.next_batch(118, 8, 0, 0.5), 8);
}

TEST(StoppingRule, TheIntervalIsAShareOfWhatIsJudged) {
  Result summary;
  summary.samples = 200;
  summary.ratio = 1, summary.ratio_low = 0.99, summary.ratio_high = 1.01;
  EXPECT_TRUE(StoppingRule({}, Backend::host).is_precise(summary));
  EXPECT_FALSE(StoppingRule({}, Backend::cuda).is_precise(summary));
  EXPECT_TRUE(StoppingRule({.precision = 0.1}, Backend::cuda).is_precise(summary));
  EXPECT_EQ(StoppingRule({}, Backend::cuda).why_noisy(summary),
            "95 % interval of the median ratio is ± 1.00 % after 200 samples (wanted: ± 0.50 % "
            "after 50)");
}

}  // namespace
}  // namespace moegate
