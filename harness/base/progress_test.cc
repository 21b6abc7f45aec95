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

TEST(Progress, ALineIsShortenedInItsMiddle) {
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 80), "topk_sort/tokens=8 chain");
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 11), "topk_…chain");
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 10), "topk_…hain");
  EXPECT_EQ(shortened("µµµµµµ", 3), "µ…µ");
  EXPECT_EQ(shortened("abc", 2), "a…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

}  // namespace
}  // namespace moegate
