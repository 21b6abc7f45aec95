// SPDX-License-Identifier: Apache-2.0
#include "harness/base/progress.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(Progress, DurationsHaveTheUnitTheyNeed) {
  EXPECT_EQ(duration_text(0.4), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(59.6), "1:00 min");
  EXPECT_EQ(duration_text(3599), "59:59 min");
  EXPECT_EQ(duration_text(7500), "2:05 h");
}

TEST(Progress, AStepThatIsBegunAgainIsOneMore) {
  EXPECT_EQ(progress_head(0, 10, 0), "[0/10] ");
  EXPECT_EQ(progress_head(3, 10, 3), "[3/10, 7 s left] ");
  EXPECT_EQ(progress_head(10, 10, 10), "[10/11, 1 s left] ");
  EXPECT_EQ(progress_head(12, 10, 12), "[12/13, 1 s left] ");
}

}  // namespace
}  // namespace moegate
