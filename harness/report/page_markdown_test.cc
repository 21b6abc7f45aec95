// SPDX-License-Identifier: Apache-2.0
#include "harness/report/page.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

Rows rows(int n, size_t kept_at_end = 0) {
  Rows rows{{{"n"}, {}}, kept_at_end};
  for (int i = 0; i < n; ++i) rows.table.rows.push_back({{std::to_string(100 + i)}});
  return rows;
}

std::string all_of(const Section& section) {
  return to_markdown({{section}, ""}, kAnyBytes);
}

TEST(PageMarkdown, BlocksAreApartByAnEmptyLine) {
  EXPECT_EQ(all_of({0,
                    {Heading{"a <b>"}, Paragraph{{{plain("one")}, {plain("two")}}}, List{},
                     List{{{code("x"), plain(": y")}, {bold("z")}}}, rows(1),
                     Commands{{{"To repeat", "ls `x`"}, {"To bless", ""}}},
                     Paragraph{{{plain("p "), bold("b")}}, /*small=*/true}}}),
            "### a \\<b\\>\n\none\ntwo\n\n- `x`: y\n- **z**\n\n| n   |\n| --- |\n| 100 |\n\n"
            "To repeat: `` ls `x` ``\n\n<sub>p **b**</sub>\n");
}

TEST(PageMarkdown, BoldRunsThroughCode) {
  EXPECT_EQ(all_of({0, {Paragraph{{{bold("a "), {"b", true, true}, bold(""), plain(" c")}}}}}),
            "**a `b`** c\n");
}

TEST(PageMarkdown, ALineStartsNoOtherBlock) {
  const auto line = [](const char* text) { return all_of({0, {Paragraph{{{plain(text)}}}}}); };
  EXPECT_EQ(line("# a"), "\\# a\n");
  EXPECT_EQ(line("- a"), "\\- a\n");
  EXPECT_EQ(line("---"), "\\---\n");
  EXPECT_EQ(line("   ==="), "\\===\n");
  EXPECT_EQ(line("12. a"), "12\\. a\n");
  for (const char* text : {"#12 a", "-3 % a", "+3 a", "1.5 a", "12 a", "12"})
    EXPECT_EQ(line(text), text + std::string("\n"));
}

TEST(PageMarkdown, AFoldedSectionHasItsTitleInSight) {
  Section section{0, {rows(1)}};
  section.folded = "a & b";
  EXPECT_EQ(all_of(section),
            "<details><summary>a &amp; b</summary>\n\n| n   |\n| --- |\n| 100 |\n\n</details>\n");
  EXPECT_EQ(all_of({.rank = 0, .blocks = {List{}}, .folded = "nothing"}), "");
}

Page three_tables(size_t rows_each) {
  const auto table = [&](int rank, const char* title) {
    return Section{rank, {Heading{title}, rows(static_cast<int>(rows_each))}};
  };
  return {{{0, {Paragraph{{{plain("verdict")}}}}},
           table(2, "second"),
           table(1, "first"),
           table(3, "third"),
           {0, {Paragraph{{{plain("end")}}}}}},
          "f.json"};
}

TEST(PageMarkdown, TheHighestRankGoesFirstRowByRow) {
  const Page page = three_tables(50);
  const size_t all = to_markdown(page, kAnyBytes).size();
  EXPECT_EQ(to_markdown(page, all), to_markdown(page, kAnyBytes));
  const std::string text = to_markdown(page, all - 1);
  EXPECT_LT(text.size(), all);
  EXPECT_NE(text.find(" more left out for size; see f.json.\n\nend\n"), std::string::npos) << text;
  const std::string half = to_markdown(page, all / 2);
  EXPECT_NE(half.find("### first\n\n| n   |\n| --- |\n| 100 |\n"), std::string::npos) << half;
  EXPECT_NE(half.find("### second"), std::string::npos) << "some rows of it";
  EXPECT_NE(half.find("\n1 more table with 50 rows left out for size; see f.json.\n\nend\n"),
            std::string::npos)
      << half;
}

TEST(PageMarkdown, NoSizeIsExceededOrCutInALine) {
  const Page page = three_tables(30);
  const std::string whole = to_markdown(page, kAnyBytes);
  size_t last = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    const std::string text = to_markdown(page, size);
    ASSERT_LE(text.size(), size);
    ASSERT_GE(text.size() + 12, last) << "more space shows no less: " << text;
    last = std::max(last, text.size());
    if (text.empty()) continue;
    EXPECT_EQ(text.find("verdict\n\n"), 0u);
    EXPECT_EQ(text.substr(text.size() - 4), "end\n");
  }
}

TEST(PageMarkdown, RowsAtTheEndStay) {
  const Section section{1, {rows(100, 2)}};
  const std::string text = to_markdown({{section}, ""}, 300);
  EXPECT_NE(text.find("\n| 100 |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n| 198 |\n| 199 |\n\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" more left out for size.\n"), std::string::npos) << text;
}

TEST(PageMarkdown, WhatCannotBeCutGoesAloneAndIsCounted) {
  const Page page{{{0, {Paragraph{{{plain("verdict")}}}}},
                   {1, {Commands{{{"To repeat", std::string(1000, 'x')}}}}},
                   {2, {rows(5)}}},
                  ""};
  EXPECT_EQ(to_markdown(page, 400),
            "verdict\n\n1 more paragraph left out for size.\n\n" + all_of(page.sections[2]));
}

TEST(PageMarkdown, EmptyWhenNotEvenTheFirstFits) {
  EXPECT_EQ(to_markdown(three_tables(50), 20), "");
}

}  // namespace
}  // namespace moegate::test
