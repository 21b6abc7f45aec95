// SPDX-License-Identifier: Apache-2.0
#include "harness/base/closest.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

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

}  // namespace
}  // namespace moegate
