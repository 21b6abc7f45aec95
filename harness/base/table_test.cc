// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
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
  EXPECT_EQ(csv("\t=1+1"), "' =1+1");
  EXPECT_EQ(csv("\r@SUM(A1)"), "' @SUM(A1)");
  for (const char* plain : {"-36.30 bits", "+5.1 %", "-1e-06", "-", "a=b", "x-1"})
    EXPECT_EQ(csv(plain), plain);
  EXPECT_EQ(render({{"=a"}, {}}, Format::csv), "'=a\r\n");
}

TEST(Table, TsvEscapesWhatWouldEndACell) {
  const Table table{{"a\tb", "n"}, {{{"x\ty\r\nz\\"}, {"-1.5", true}}, {{"=1+1"}, {""}}}};
  EXPECT_EQ(render(table, Format::tsv), "a\\tb\tn\nx\\ty\\r\\nz\\\\\t-1.5\n=1+1\t\n");
}

TEST(Table, ReadersGetTheirColumns) {
  Table table{{"case", "Speedup", "speedup"}, {{{"a"}, {"1.21x"}, {"1.2137", true}}}};
  table.only = {
      {"case", Readers::programs}, {"Speedup", Readers::people}, {"speedup", Readers::programs}};
  EXPECT_EQ(render(table, Format::csv), "case,speedup\r\na,1.2137\r\n");
  EXPECT_EQ(render(table, Format::tsv), "case\tspeedup\na\t1.2137\n");
  EXPECT_EQ(render(table, Format::md), "| Speedup |\n| ------- |\n| 1.21x   |\n");
  EXPECT_EQ(for_readers(with_columns(table, {1, 0}), Readers::people).columns,
            (std::vector<std::string>{"Speedup"}));
  const Table some = most_important(table, 1, [](const auto&) { return true; });
  EXPECT_EQ(render(some, Format::csv), render(table, Format::csv));
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
  for (const Format format : {Format::md, Format::csv, Format::tsv, Format::json}) {
    EXPECT_THROW(render(table, format), Error);
  }
}

TEST(Table, ParsesFormats) {
  EXPECT_EQ(parse_format("md"), Format::md);
  EXPECT_EQ(parse_format("csv"), Format::csv);
  EXPECT_EQ(parse_format("json"), Format::json);
  EXPECT_EQ(refusal_of([&] { parse_format("xml"); }),
            "format 'xml' is unknown; use text, md, csv, tsv or json");
}

Table three_rows() {
  return {{"case", "us", "why"},
          {{{"b"}, {"10", true}, {""}}, {{"a"}, {"9.5", true}, {"busy"}}, {{"c"}, {""}, {""}}}};
}

std::string first_column(const Table& table) {
  std::string texts;
  for (const auto& row : table.rows) texts += row[0].text;
  return texts;
}

TEST(TableView, ColumnsWithoutAnyTextGo) {
  Table table = three_rows();
  EXPECT_EQ(without_empty_columns(table).columns, table.columns);
  table.rows[1][2].text.clear();
  EXPECT_EQ(without_empty_columns(table).columns, (std::vector<std::string>{"case", "us"}));
  EXPECT_EQ(without_empty_columns(table).rows[2].size(), 2u);
  table.rows[1][2].mark = "!";
  EXPECT_EQ(without_empty_columns(table).columns.size(), 3u);
  EXPECT_EQ(without_empty_columns({{"a"}, {}}).columns.size(), 1u);
}

TEST(TableView, WhatMattersStaysInItsPlace) {
  const auto is_c = [](const auto& row) { return row[0].text == "c"; };
  EXPECT_EQ(first_column(most_important(three_rows(), 2, is_c)), "bc");
  EXPECT_EQ(first_column(most_important(three_rows(), 1, is_c)), "c");
  EXPECT_EQ(first_column(most_important(three_rows(), 9, is_c)), "bac");
}

TEST(TableView, AColumnIsFoundByName) {
  const Table table{{"us", "US", "Speedup"}, {}};
  EXPECT_EQ(column_of(table, "--sort", "US"), 1u);
  EXPECT_EQ(column_of(table, "--sort", "speedup"), 2u);
  EXPECT_FALSE(find_column(table, "speed"));
  EXPECT_EQ(refusal_of([&] { column_of(table, "--sort", "spedup"); }),
            "--sort: there is no column 'spedup' (did you mean 'Speedup'?); the columns are: us, "
            "US, Speedup");
}

TEST(TableView, ColumnsInTheOrderAskedFor) {
  const Table part = with_columns(three_rows(), {1, 0});
  EXPECT_EQ(part.columns, (std::vector<std::string>{"us", "case"}));
  EXPECT_EQ(part.rows[1][0].text, "9.5");
  EXPECT_TRUE(part.rows[1][0].number);
  EXPECT_EQ(part.rows[1][1].text, "a");
}

std::string in_order(const std::vector<std::string>& cells, bool descending) {
  Table table{{"x"}, {}};
  for (const std::string& cell : cells) table.rows.push_back({{cell}});
  sort_rows(table, 0, descending);
  std::string all;
  for (const auto& row : table.rows) all += row[0].text + "|";
  return all;
}

TEST(TableView, NumbersAreOrderedAsNumbers) {
  EXPECT_EQ(in_order({"10", "9.5x", "-1", "", "~", "1e3"}, false), "-1|9.5x|10|1e3|~||");
  EXPECT_EQ(in_order({"10", "9.5x", "-1", "", "~", "1e3"}, true), "1e3|10|9.5x|-1|~||");
  EXPECT_EQ(in_order({"tokens=16", "tokens=8", "nano", "inf"}, false),
            "inf|nano|tokens=8|tokens=16|");
  EXPECT_EQ(in_order({"1 b", "1 a"}, true), "1 b|1 a|") << "equal numbers stay";
  EXPECT_EQ(in_order({"-", "+x", ".5"}, false), ".5|+x|-|");
}

}  // namespace
}  // namespace moegate::test
