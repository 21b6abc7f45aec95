// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_view.h"

#include <gtest/gtest.h>

#include "harness/base/refusal_fixture.h"

namespace moegate {
namespace {

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
            "--sort: no column 'spedup' (did you mean 'Speedup'?); there are: us, US, Speedup");
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
}  // namespace moegate
