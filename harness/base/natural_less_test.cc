// SPDX-License-Identifier: Apache-2.0
#include "harness/base/natural_less.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

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

}  // namespace
}  // namespace moegate
