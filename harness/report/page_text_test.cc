// SPDX-License-Identifier: Apache-2.0
#include "harness/report/page.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

Page text_page() {
  Section folded{1, {Rows{{{"n"}, {{{"1", true}}}}}}};
  folded.folded = "The numbers";
  return {{{0, {Paragraph{{{bold("FAIL: one row"), plain(", on a GPU")}}}}},
           {0,
            {List{{{code("suite"), plain(": judged against the baseline")}}},
             Commands{{{"To repeat", "moegate run --suite a-long-name"}, {"To bless", ""}}}}},
           {3, {List{}}},
           folded},
          ""};
}

TEST(PageText, BlocksAreApartAndFitTheScreen) {
  EXPECT_EQ(to_text(text_page(), {20, false}),
            "FAIL: one row, on a\nGPU\n\n"
            "- suite: judged\n  against the\n  baseline\n\n"
            "To repeat:\n  moegate run --suite a-long-name\n\n"
            "The numbers\n\n"
            "n\n─\n1\n");
}

TEST(PageText, WhatComesFirstIsBoldWhereThereAreColours) {
  const std::string text = to_text(text_page(), {80, true});
  EXPECT_TRUE(text.starts_with("\033[1mFAIL: one row, on a GPU\033[0m\n")) << text;
  EXPECT_NE(text.find("\033[1mThe numbers\033[0m\n"), std::string::npos) << text;
}

TEST(PageText, AColumnThatSaysNothingTakesNoSpace) {
  const Page page{{{0, {Rows{{{"n", "% of ceiling"}, {{{"1", true}, {"", true}}}}}}}}, ""};
  EXPECT_EQ(to_text(page, {80, false}), "n\n─\n1\n");
}

TEST(PageText, AHistoryIsALine) {
  const LevelChart chart{.file = "",
                         .title = "History",
                         .unit = "us",
                         .signals = {},
                         .runs = nullptr,
                         .points = {{.log = 0}, {.log = 1}},
                         .steps = {}};
  EXPECT_EQ(to_text({{{0, {chart}}}, ""}, {80, false}),
            "History\n▁▇ 1 … 2.7183 us, newest at the right\n");
}

TEST(PageText, TextFromElsewhereCommandsNoTerminal) {
  const Page page{{{0, {Paragraph{{{plain("a\033[31mb\nc")}}}}}}, ""};
  EXPECT_EQ(to_text(page, {80, true}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace moegate::test
