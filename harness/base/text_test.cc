// SPDX-License-Identifier: Apache-2.0
#include "harness/base/text.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"

namespace moegate::test {
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

TEST(NaturalLess, OrdersNumbersByTheirValue) {
  const NaturalLess less;
  EXPECT_TRUE(less("tokens=8", "tokens=16"));
  EXPECT_FALSE(less("tokens=16", "tokens=8"));
  EXPECT_TRUE(less("a", "a1"));
  EXPECT_TRUE(less("a08", "a8") != less("a8", "a08"));
  EXPECT_FALSE(less("a8", "a8"));
  EXPECT_TRUE(less("x=99999999999999999999999998", "x=99999999999999999999999999"));
  EXPECT_TRUE(less(std::pair<std::string, std::string>{"k8", "z"}, {"k16", "a"}));
}

TEST(NaturalLess, FindsTheFirstDifferenceWhereverItIs) {
  const std::string text = "op/cache=cold,launch=graph,routing=uniform";
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = '~';  // after all others
    EXPECT_LT(NaturalLess::compare(text, other), 0) << i;
    EXPECT_GT(NaturalLess::compare(other, text), 0) << i;
    EXPECT_LT(NaturalLess::compare(text.substr(0, i), text), 0) << i;
  }
  EXPECT_EQ(NaturalLess::compare(text, text), 0);
}

TEST(Closest, DistanceCountsChangesOfOneCharacter) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("tiny", "tiny"), 0u);
  EXPECT_EQ(edit_distance("tiny", "tyni"), 2u) << "not neighbours";
  EXPECT_EQ(edit_distance("topk_srot", "topk_sort"), 1u) << "swapped";
  EXPECT_EQ(edit_distance("latncy", "latency"), 1u);
  EXPECT_EQ(edit_distance("latenccy", "latency"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Closest, TheClosestNameIsSuggested) {
  const std::vector<std::string> known = {"run", "runs", "report", "speedup", "latency"};
  EXPECT_EQ(did_you_mean("reprot", known), " (did you mean 'report'?)");
  EXPECT_EQ(did_you_mean("rnu", known), " (did you mean 'run'?)");
  EXPECT_EQ(did_you_mean("SpeedUp", known), " (did you mean 'speedup'?)");
  EXPECT_EQ(did_you_mean("tyni", {"dense", "tiny"}), " (did you mean 'tiny'?)");
  EXPECT_EQ(did_you_mean("lat", known), " (did you mean 'latency'?)") << "its start";
}

TEST(Closest, WhatIsFarIsNot) {
  const std::vector<std::string> known = {"run", "report", "us", ""};
  EXPECT_EQ(did_you_mean("frobnicate", known), "");
  EXPECT_EQ(did_you_mean("", known), "");
  EXPECT_EQ(did_you_mean("x", known), "");
  EXPECT_EQ(did_you_mean("re", known), "") << "too short for a start";
  EXPECT_EQ(did_you_mean(std::string(100000, 'r'), known), "");
  EXPECT_EQ(did_you_mean("run", {}), "");
}

std::string refusal(const std::string& pattern) {
  return refusal_of([&] { compile_pattern("--filter", pattern); });
}

TEST(Pattern, IsFoundAnywhereOrMatchesTheWhole) {
  const Pattern tokens = compile_pattern("--filter", R"(tokens=\d+(,|$))");
  EXPECT_TRUE(tokens.found_in("topk_sort/experts=256,tokens=8"));
  EXPECT_FALSE(tokens.found_in("topk_sort/tokens=x"));
  EXPECT_FALSE(tokens.matches("topk_sort/tokens=8"));
  EXPECT_TRUE(tokens.matches("tokens=8"));
  EXPECT_TRUE(compile_pattern("--filter", "").found_in("anything"));
  EXPECT_FALSE(Pattern().found_in(""));
}

TEST(Pattern, NoneIsRefusedWithItsFlag) {
  EXPECT_NE(refusal("(8|16").find("--filter '(8|16' is not a regular expression: missing )"),
            std::string::npos);
  EXPECT_NE(refusal("(?=x)").find("write it as RE2 does"), std::string::npos);
  EXPECT_NE(refusal("\xff").find("is not a regular expression"), std::string::npos);
}

TEST(Pattern, NoneCrashesOrHangs) {
  EXPECT_NE(refusal(std::string(100000, '(')).find("the pattern has 100000 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(4000, '(')).find("is not a regular expression"), std::string::npos);
  const Pattern slow = compile_pattern("--filter", "(.*)*(.*)*(.*)*q$");
  EXPECT_FALSE(slow.found_in(std::string(200, 'x')));
}

TEST(Pattern, ExactlyMatchesATextAndNothingElse) {
  const std::string key = "op/a.b+c=(8)|[x]{2}^$\\*?,é";
  EXPECT_TRUE(compile_pattern("--filter", exactly(key)).found_in(key));
  EXPECT_FALSE(compile_pattern("--filter", exactly(key)).found_in(key + "0"));
  EXPECT_FALSE(compile_pattern("--filter", exactly("a.b")).found_in("aXb"));
}

TEST(FlagsText, SaysOnlyWhatWasGiven) {
  EXPECT_EQ(flags_text({{"filter", ""}, {"variant", ""}}), "");
  EXPECT_EQ(flags_text({{"filter", ""}, {"variant", "v"}}), "--variant 'v'");
  EXPECT_EQ(flags_text({{"filter", "x"}, {"variant", "v"}}), "--filter 'x', --variant 'v'");
}

}  // namespace
}  // namespace moegate::test
