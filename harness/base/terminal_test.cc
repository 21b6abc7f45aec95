// SPDX-License-Identifier: Apache-2.0
#include "harness/base/terminal.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/base/notes.h"

namespace moegate::test {
namespace {

TEST(Terminal, ItsWidthIsWhatIsSetElseItsOwnElse80) {
  EXPECT_EQ(line_width("100", 120), 100u);
  EXPECT_EQ(line_width(nullptr, 120), 120u);
  EXPECT_EQ(line_width(nullptr, 0), 80u);
  for (const char* none : {"", "0", "-5", "wide"}) EXPECT_EQ(line_width(none, 120), 120u) << none;
  EXPECT_EQ(line_width("3", 120), 20u) << "room for something";
}

TEST(Terminal, ItAllowsColoursWhereNobodyForbidsThem) {
  EXPECT_TRUE(allows_colour(nullptr, nullptr, "xterm", true));
  EXPECT_FALSE(allows_colour(nullptr, nullptr, "xterm", false)) << "a pipe";
  EXPECT_FALSE(allows_colour(nullptr, nullptr, "dumb", true));
  EXPECT_TRUE(allows_colour(nullptr, "1", "xterm", false));
  EXPECT_FALSE(allows_colour(nullptr, "0", "xterm", false));
  EXPECT_FALSE(allows_colour("1", "1", "xterm", true)) << "NO_COLOR wins";
  EXPECT_TRUE(allows_colour("", nullptr, "xterm", true)) << "empty is unset";
}

TEST(Terminal, CharactersCountNotBytes) {
  EXPECT_EQ(display_width("µ…a"), 3u);
}

TEST(Terminal, ALineIsShortenedInItsMiddle) {
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 80), "topk_sort/tokens=8 chain");
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 11), "topk_…chain");
  EXPECT_EQ(shortened("topk_sort/tokens=8 chain", 10), "topk_…hain");
  EXPECT_EQ(shortened("µµµµµµ", 3), "µ…µ");
  EXPECT_EQ(shortened("abc", 2), "a…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Terminal, LinesBreakAtSpacesAndInsideLongWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("one two  three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("a µµµµµ b", 3), (Lines{"a", "µµµ", "µµ", "b"}));
  EXPECT_EQ(wrapped("µµµ b", 2), (Lines{"µµ", "µ", "b"}));
  EXPECT_EQ(wrapped("exactly", 7), (Lines{"exactly"}));
  EXPECT_EQ(wrapped("op/a=1,b=2,c=3 x", 12), (Lines{"op/a=1,b=2,", "c=3 x"}));
  EXPECT_EQ(wrapped("more by 16.6 %, or 2 %", 12), (Lines{"more by", "16.6 %, or", "2 %"}));
  EXPECT_EQ(wrapped("  ", 7), Lines{});
}

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
}  // namespace moegate::test
