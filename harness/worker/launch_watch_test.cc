// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/process_state.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

std::vector<Sample> launches(const std::vector<std::pair<size_t, uint64_t>>& sets_and_hashes) {
  std::vector<Sample> all;
  for (const auto& [set, hash] : sets_and_hashes) {
    Sample& s = all.emplace_back();
    s.set = set;
    s.outputs = hash;
  }
  return all;
}

TEST(LaunchWatch, EveryLaunchThatWritesSomethingElseIsSeen) {
  LaunchWatch watch;
  watch.learn(launches({{0, 7}, {1, 8}}), launches({{0, 7}, {1, 8}}));
  watch.add(launches({{0, 7}, {1, 8}, {0, 7}}));
  EXPECT_EQ(watch.fault(), "");
  watch.add(launches({{1, 8}, {0, 9}}));
  EXPECT_EQ(watch.compared(), 5);
  EXPECT_NE(watch.fault().find("1 of 5"), std::string::npos) << watch.fault();
}

TEST(LaunchWatch, ProblemsWhoseBytesVaryAreLeftToOtherChecks) {
  LaunchWatch watch;
  watch.learn(launches({{0, 7}, {1, 8}}), launches({{0, 6}, {1, 8}}));
  watch.add(launches({{0, 1}, {0, 2}, {2, 3}, {1, 8}}));
  EXPECT_EQ(watch.compared(), 1);
  EXPECT_EQ(watch.fault(), "");
}

}  // namespace
}  // namespace moegate::test
