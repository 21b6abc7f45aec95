// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/refusal_fixture.h"

namespace moegate {
namespace {

Table sample() {
  return {{"variant", "µs"}, {{{"fused", false}, {"3.10", true}}, {{"a|b", false}, {"12", true}}}};
}

TEST(Table, MarkdownAlignsAndEscapes) {
  EXPECT_EQ(render(sample(), Format::md),
            "| variant |   µs |\n"
            "| ------- | ---: |\n"
            "| fused   | 3.10 |\n"
            "| a\\|b    |   12 |\n");
}

TEST(Table, MarkdownKeepsALineAndAWidth) {
  const Table table{{"a"}, {{{"x\r\ny", false}}, {{"", false}}}};
  EXPECT_EQ(render(table, Format::md), "| a   |\n| --- |\n| x y |\n|     |\n");
}

TEST(Table, ACellIsShownAsItIs) {
  const Table table{{"a_b", "x"}, {{{"<b> *c* [d](e)", false}, {"1.2x", true, true, "⚠"}}}};
  EXPECT_EQ(render(table, Format::md),
            "| a_b                 |          x |\n"
            "| ------------------- | ---------: |\n"
            "| \\<b\\> \\*c\\* [d\\](e) | **1.2x** ⚠ |\n");
  EXPECT_EQ(render(table, Format::csv), "a_b,x\r\n<b> *c* [d](e),1.2x ⚠\r\n");
}

TEST(Table, CsvQuotesOnlyWhatNeedsItOnOneLine) {
  const Table table{{"a", "b"},
                    {{{"x,y", false}, {"say \"hi\"", false}}, {{"l\nm", false}, {"1.50", true}}}};
  EXPECT_EQ(render(table, Format::csv), "a,b\r\n\"x,y\",\"say \"\"hi\"\"\"\r\nl m,1.50\r\n");
}

TEST(Table, CsvHoldsNoFormulas) {
  const auto csv = [](const std::string& cell) {
    const std::string text = render({{"a"}, {{{cell, false}}}}, Format::csv);
    return text.substr(3, text.size() - 5);
  };
  EXPECT_EQ(csv("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(csv("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv("+cmd|x"), "'+cmd|x");
  EXPECT_EQ(csv("-2+3"), "'-2+3");
  EXPECT_EQ(csv("-HYPERLINK"), "'-HYPERLINK");
  for (const char* plain : {"-36.30 bits", "+5.1 %", "-1e-06", "-", "a=b", "x-1"})
    EXPECT_EQ(csv(plain), plain);
  EXPECT_EQ(render({{"=a"}, {}}, Format::csv), "'=a\r\n");
}

TEST(Table, JsonIsAnArrayOfObjectsInColumnOrder) {
  EXPECT_EQ(
      render(sample(), Format::json),
      "[\n  {\"variant\": \"fused\", \"µs\": 3.10},\n  {\"variant\": \"a|b\", \"µs\": 12}\n]\n");
  EXPECT_EQ(render({{"a"}, {}}, Format::json), "[]\n");
}

TEST(Table, JsonTellsNoValueFromAnEmptyText) {
  const Table table{{"a", "b"}, {{{.text = "", .none = true}, {""}}}};
  EXPECT_EQ(render(table, Format::json), "[\n  {\"a\": null, \"b\": \"\"}\n]\n");
  EXPECT_EQ(render(table, Format::csv), "a,b\r\n,\r\n");
}

TEST(Table, JsonIsValidWhateverTheCellsHold) {
  const Table table{{"text", "n"},
                    {{{"q\"\\\n\t\x01", false}, {"n/a", true}},
                     {{"\xff\xfe", false}, {"", true}},
                     {{"12", false}, {"-1.5e-3", true}},
                     {{"", false}, {"inf", true}},
                     {{"", false}, {"+1", true}}}};
  const auto parsed = nlohmann::json::parse(render(table, Format::json));
  ASSERT_EQ(parsed.size(), 5u);
  EXPECT_EQ(parsed[0]["text"], "q\"\\\n\t\x01");
  EXPECT_EQ(parsed[0]["n"], "n/a");
  EXPECT_TRUE(parsed[1]["n"].is_null());
  EXPECT_EQ(parsed[2]["text"], "12");
  EXPECT_EQ(parsed[2]["n"], -1.5e-3);
  EXPECT_EQ(parsed[3]["n"], "inf");
  EXPECT_EQ(parsed[4]["n"], "+1");
}

TEST(Table, RaggedRowIsAnInternalError) {
  const Table table{{"a", "b"}, {{{"x", false}}}};
  for (const Format format : {Format::md, Format::csv, Format::json}) {
    EXPECT_THROW(render(table, format), Error);
  }
}

TEST(Table, ParsesFormats) {
  EXPECT_EQ(parse_format("md"), Format::md);
  EXPECT_EQ(parse_format("csv"), Format::csv);
  EXPECT_EQ(parse_format("json"), Format::json);
  EXPECT_EQ(refusal_of([&] { parse_format("xml"); }),
            "format 'xml' is unknown; use text, md, csv or json");
}

}  // namespace
}  // namespace moegate
