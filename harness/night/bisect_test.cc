// SPDX-License-Identifier: Apache-2.0
#include "harness/night/bisect.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

TEST(Bisect, ExitCodesOfTheGateForGit) {
  EXPECT_EQ(bisect_code(0), 0);
  for (const int worse : {10, 11, 12}) EXPECT_EQ(bisect_code(worse), 1) << worse;
  for (const int untestable : {1, 13, 20, 21})
    EXPECT_EQ(bisect_code(untestable), 125) << untestable;
  for (const int fatal : {2, 22, 24, 30, 126, 127, 130, 137, 255})
    EXPECT_EQ(bisect_code(fatal), 128) << fatal;
}

TEST(Bisect, CausesOfAVerdict) {
  EXPECT_EQ(causes_in(R"({"cases": [
      {"key": "op/tokens=8", "variant": "fused",
       "cause": {"kind": "work", "sentence": "more bytes"}},
      {"key": "op/tokens=8", "variant": "plain"},
      {"key": "op/tokens=9", "variant": "fused", "cause": {"sentence": "spills"}}]})"),
            "op/tokens=8 fused: more bytes\nop/tokens=9 fused: spills\n");
  for (const char* none :
       {"", "{", "[]", "{}", R"({"cases": 1})", R"({"cases": [1, {"cause": 2}]})"}) {
    EXPECT_EQ(causes_in(none), "") << none;
  }
}

}  // namespace
}  // namespace moegate::test
