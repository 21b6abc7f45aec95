// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_view.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace moegate
