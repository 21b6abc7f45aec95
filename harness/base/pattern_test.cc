// SPDX-License-Identifier: Apache-2.0
#include "harness/base/pattern.h"

#include <gtest/gtest.h>

#include "harness/base/refusal_fixture.h"

namespace moegate {
namespace {

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
  EXPECT_NE(refusal("(8|16").find("--filter '(8|16' is no regular expression: missing )"),
            std::string::npos);
  EXPECT_NE(refusal("(?=x)").find("the syntax is RE2's"), std::string::npos);
  EXPECT_NE(refusal("\xff").find("is no regular expression"), std::string::npos);
}

TEST(Pattern, NoneCrashesOrHangs) {
  EXPECT_NE(refusal(std::string(100000, '(')).find("is a pattern of 100000 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(4000, '(')).find("is no regular expression"), std::string::npos);
  const Pattern slow = compile_pattern("--filter", "(.*)*(.*)*(.*)*q$");
  EXPECT_FALSE(slow.found_in(std::string(200, 'x')));
}

TEST(Pattern, ExactlyMatchesATextAndNothingElse) {
  const std::string key = "op/a.b+c=(8)|[x]{2}^$\\*?,é";
  EXPECT_TRUE(compile_pattern("--filter", exactly(key)).found_in(key));
  EXPECT_FALSE(compile_pattern("--filter", exactly(key)).found_in(key + "0"));
  EXPECT_FALSE(compile_pattern("--filter", exactly("a.b")).found_in("aXb"));
}

}  // namespace
}  // namespace moegate
