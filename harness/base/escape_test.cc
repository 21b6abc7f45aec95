// SPDX-License-Identifier: Apache-2.0
#include "harness/base/escape.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

TEST(Escape, Utf8StaysAndOtherBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("5 µs … ok"), "5 µs … ok");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8(std::string("nul\0", 4)), std::string("nul\0", 4));
}

TEST(Escape, ClipsCharactersNotBytes) {
  EXPECT_EQ(clipped("µµµ", 3), "µµµ");
  EXPECT_EQ(clipped("µµµµ", 3), "µµ…");
  EXPECT_EQ(clipped("", 3), "");
}

TEST(Escape, Xml) {
  EXPECT_EQ(xml_escaped("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;");
  EXPECT_EQ(xml_escaped("\x01|\x1b|\xEF\xBF\xBF|\xc3("),
            "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD(");
}

TEST(Escape, OneLine) {
  EXPECT_EQ(one_line("a\r\nb\rc\nd\te"), "a b c d e");
  EXPECT_EQ(one_line("\x1b[31m\x7f|\xC2\x9b|\xE2\x80\xAE|\xE2\x80\xA8|µ…"),
            "\xEF\xBF\xBD[31m\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD| |µ…");
  EXPECT_EQ(one_line(std::string("nul\0\xff", 5)), "nul\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Escape, MarkdownShowsWhatItSays) {
  EXPECT_EQ(markdown_escaped("kernel<int> `x` a\\b &lt; | µ"),
            "kernel\\<int\\> \\`x\\` a\\\\b \\&lt; \\| µ");
  EXPECT_EQ(markdown_escaped("**b** *i* _i_ __b__ ~s~ a*b*c"),
            "\\*\\*b\\*\\* \\*i\\* \\_i\\_ \\_\\_b\\_\\_ \\~s\\~ a\\*b\\*c");
  EXPECT_EQ(markdown_escaped("a\n::error::b"), "a ::error::b");
}

TEST(Escape, MarkdownHasNoLinksImagesOrMentions) {
  EXPECT_EQ(markdown_escaped("![a](u) [b](javascript:x) [c][d] [e]: u"),
            "![a\\](u) [b\\](javascript:x) [c\\][d] [e\\]: u");
  EXPECT_EQ(markdown_escaped("[what follows may be (u)]"), "[what follows may be (u)\\]");
  EXPECT_EQ(markdown_escaped("@team, (@a) me@b.org @ 5"),
            "@\xE2\x80\x8Bteam, (@\xE2\x80\x8B"
            "a) me@b.org @ 5");
}

TEST(Escape, MarkdownLeavesNamesReadable) {
  for (const char* text : {"topk_sort/experts=8,tokens=16", "weights[3] is 2, should be 1", "~",
                           "+1.5 % (us)", "x ~ y", "#1", "-3", "a → b"}) {
    EXPECT_EQ(markdown_escaped(text), text);
  }
}

TEST(Escape, MarkdownCodeHasAFenceThatTheTextLacks) {
  EXPECT_EQ(markdown_code("a\n<b> *c*"), "`a <b> *c*`");
  EXPECT_EQ(markdown_code("echo `date`"), "`` echo `date` ``");
  EXPECT_EQ(markdown_code("a``b`"), "``` a``b` ```");
  EXPECT_EQ(markdown_code(""), "");
}

TEST(Escape, WorkflowCommands) {
  EXPECT_EQ(workflow_escaped("+5 %: a, b\r\nc"), "+5 %25: a, b%0D%0Ac");
  EXPECT_EQ(workflow_property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
}

TEST(Escape, PrintableKeepsLinesAndGivesNoCommands) {
  EXPECT_EQ(printable("a\n\tb\r\nc"), "a\n\tb\nc");
  EXPECT_EQ(printable("\x1b[31mred\x7f\xff"), "\xEF\xBF\xBD[31mred\xEF\xBF\xBD\xEF\xBF\xBD");
  const std::string zero = "\xE2\x80\x8B";
  EXPECT_EQ(printable("::error::x"), zero + "::error::x");
  EXPECT_EQ(printable("a::b\n  ::set-output::x"), "a::b\n  " + zero + "::set-output::x");
  EXPECT_EQ(printable("##[error]x"), "##" + zero + "[error]x");
  EXPECT_EQ(printable("suites/a.suite:3: topk_sort"), "suites/a.suite:3: topk_sort");
  EXPECT_EQ(markdown_escaped("::error::x"), "\\::error::x");
}

}  // namespace
}  // namespace moegate::test
