// SPDX-License-Identifier: Apache-2.0
#include "harness/base/text.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(parse_number<int>("12"), 12);
  EXPECT_EQ(parse_number<double>("1.5e2"), 150);
  for (const char* bad : {"", " 1", "1 ", "+1", "1,5", "0x10", "one"}) {
    EXPECT_FALSE(parse_number<double>(bad)) << bad;
  }
  EXPECT_FALSE(parse_number<int>("1.5"));
}

TEST(Text, APercentageNeedsItsSign) {
  EXPECT_DOUBLE_EQ(*parse_percent("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*parse_percent("1000%"), 10);
  for (const char* bad : {"", "%", "0.01", "0%", "-1%", "1001%", "1 %", "nan%"}) {
    EXPECT_FALSE(parse_percent(bad)) << bad;
  }
}

TEST(Text, ListsKeepEmptyParts) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" "), "");
  EXPECT_EQ(split_list("a, b ,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_list("a,,"), (std::vector<std::string>{"a", "", ""}));
  EXPECT_EQ(split_list(""), (std::vector<std::string>{""}));
}

TEST(Text, ShellWords) {
  EXPECT_EQ(shell_word("tokens=1,8"), "tokens=1,8");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
}

}  // namespace
}  // namespace moegate
