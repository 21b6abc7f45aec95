// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/stall_tally.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

bool never_around(const std::string&) {
  return false;
}

PcSample pc_sample(const std::string& function, int64_t offset, const std::string& reason,
                   int64_t samples, uint64_t cubin = 1) {
  return {cubin, function, 7, offset, reason, samples};
}

TEST(StallTally, NamesOfReasonsHaveNoPrefixAndTwinsDoNotCount) {
  EXPECT_EQ(stall_reason("smsp__pcsamp_warps_issue_stalled_long_scoreboard"), "long_scoreboard");
  EXPECT_EQ(stall_reason("smsp__pcsamp_warps_issue_stalled_selected"), "selected");
  EXPECT_EQ(stall_reason("smsp__pcsamp_warps_issue_stalled_barrier_not_issued"), std::nullopt);
  EXPECT_EQ(stall_reason("of_another_age"), "of_another_age");
}

TEST(StallTally, AddsUpByKernelInstructionAndReason) {
  StallTally tally;
  tally.add(pc_sample("second", 0x20, "barrier", 5));
  for (int batch = 0; batch < 2; ++batch) {
    tally.add(pc_sample("first", 0x10, "long_scoreboard", 3));
    tally.add(pc_sample("first", 0x10, "selected", 1));
    tally.add(pc_sample("first", 0x30, "long_scoreboard", 4));
  }
  const StallTable t = tally.table({"first", "memset", "second"}, never_around, 200);
  ASSERT_EQ(t.kernels.size(), 3u);
  EXPECT_EQ(t.kernels[0].name, "first");
  EXPECT_EQ(t.kernels[0].samples, 16);
  EXPECT_EQ(t.kernels[0].symbol, 7u);
  EXPECT_EQ(t.kernels[1].samples, 0);
  EXPECT_EQ(t.kernels[2].samples, 5);
  EXPECT_EQ(t.samples, 21);
  ASSERT_EQ(t.rows.size(), 4u);
  const std::tuple<int, int64_t, std::string, int64_t> expected[] = {
      {0, 0x30, "long_scoreboard", 8},
      {0, 0x10, "long_scoreboard", 6},
      {0, 0x10, "selected", 2},
      {2, 0x20, "barrier", 5}};
  for (size_t i = 0; i < t.rows.size(); ++i) {
    const StallRow& r = t.rows[i];
    EXPECT_EQ(std::tuple(r.ordinal, r.offset, r.reason, r.samples), expected[i]) << i;
  }
}

TEST(StallTally, OnlyTheHottestBecomeRowsAndAllCount) {
  StallTally tally;
  for (int i = 0; i < 5; ++i) tally.add(pc_sample("gemm", 16 * i, "wait", 10 + i));
  const StallTable t = tally.table({"gemm"}, never_around, 2);
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.rows[0].offset, 64);
  EXPECT_EQ(t.rows[1].offset, 48);
  EXPECT_EQ(t.samples, 60);
}

TEST(StallTally, WhatRunsAroundALaunchIsLeftOutUnlessTheLaunchHasIt) {
  StallTally tally;
  tally.add(pc_sample("flush", 0, "long_scoreboard", 900));
  tally.add(pc_sample("cold", 0, "wait", 1));
  tally.add(pc_sample("hot", 0, "wait", 2));
  const auto around = [](const std::string& name) { return name == "flush"; };
  const StallTable unknown = tally.table({}, around, 200);
  ASSERT_EQ(unknown.kernels.size(), 2u);
  EXPECT_EQ(unknown.kernels[0].name, "hot");
  EXPECT_EQ(unknown.kernels[1].name, "cold");
  EXPECT_EQ(unknown.samples, 3);
  const StallTable known = tally.table({"flush"}, around, 200);
  EXPECT_EQ(known.kernels[0].samples, 900);
}

TEST(StallTally, AKernelThatRunsTwiceHasItsSamplesAtTheFirst) {
  StallTally tally;
  tally.add(pc_sample("twice", 0, "wait", 4));
  const StallTable t = tally.table({"twice", "once", "twice"}, never_around, 200);
  ASSERT_EQ(t.kernels.size(), 3u);
  EXPECT_EQ(t.kernels[0].samples, 4);
  EXPECT_EQ(t.kernels[2].samples, 0);
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(t.rows[0].ordinal, 0);
  EXPECT_EQ(t.samples, 4);
}

TEST(StallTally, MangledFunctionsMeetTheNamesThatPeopleRead) {
  StallTally tally;
  tally.add(pc_sample("_Z5firstPf", 0, "wait", 4));
  tally.add(pc_sample("_Z6secondv", 0, "wait", 9));
  const StallTable t = tally.table({"first(float*)"}, never_around, 200);
  ASSERT_EQ(t.kernels.size(), 2u);
  EXPECT_EQ(t.kernels[0].function, "_Z5firstPf");
  EXPECT_EQ(t.kernels[0].samples, 4);
  EXPECT_EQ(t.kernels[1].name, "second()");
}

TEST(StallTally, TheTextIsThatOfTheCubinThatRanMost) {
  StallTally tally;
  tally.add(pc_sample("gemm", 0, "wait", 4, 11));
  tally.add(pc_sample("gemm", 0, "wait", 5, 12));
  const StallTable t = tally.table({"gemm"}, never_around, 200);
  EXPECT_EQ(t.kernels[0].cubin, 12u);
  ASSERT_EQ(t.rows.size(), 1u) << "one row of an instruction and a reason, as the store has it";
  EXPECT_EQ(t.rows[0].samples, 9);
}

}  // namespace
}  // namespace moegate::test
