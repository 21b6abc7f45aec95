// SPDX-License-Identifier: Apache-2.0
// Causes that were planted in a bf16 GEMM by mma.sync, with what was counted of it on an H200 (driver
// 580.159, 2026-11-24, commit 8f95c61).
#include <gtest/gtest.h>

#include "harness/cause/cause.h"
#include "harness/cause/cause_fixture.h"

namespace moegate {
namespace {

class PlantedCauseTest : public testing::Test {
 protected:
  void SetUp() override {
    for (RowProfile* side : {&base_, &head_}) {
      side->measured->kernels[0].block = "128x1x1";
      counter(*side, "sm__inst_executed.sum") = 12.1e6;
    }
  }
  Cause cause(double effect) const { return explain(base_, head_, {effect}); }
  static void set(RowProfile& side, const std::string& name, double value) {
    counter(side, name) = value;
  }
  void both(const std::string& name, double base, double head) {
    set(base_, name, base);
    set(head_, name, head);
  }
  /// Warps that wait for this reason, per executed instruction.
  void stalled(const std::string& reason, double base, double head) {
    const std::string name = "stalled_" + reason + ".sum";
    set(base_, name, base * counter(base_, "sm__inst_executed.sum"));
    set(head_, name, head * counter(head_, "sm__inst_executed.sum"));
  }
  KernelRow& kernel(RowProfile& side) { return side.measured->kernels[0]; }

  RowProfile base_ = row_profile(), head_ = row_profile();
};

TEST_F(PlantedCauseTest, ABarrierMorePerStep) {
  slow_down(head_, 0.061);
  both("sm__inst_executed.sum", 12.1e6, 12.4e6);
  stalled("long_scoreboard", 3.1, 3.05);
  stalled("barrier", 0.36, 0.79);
  stalled("short_scoreboard", 0.8, 0.8);
  EXPECT_EQ(cause(0.061).sentence,
            "barriers: stalls on barrier +0.43, instructions +2.5 % (12.1 -> 12.4 M)");
  EXPECT_EQ(cause(0.061).kind, CauseKind::work);
}

TEST_F(PlantedCauseTest, EveryProductTwice) {
  slow_down(head_, 0.42);
  both("sm__cycles_active.avg", 56254, 79877);
  both("pipe_tensor", 42.36, 59.67);
  both("sm__inst_executed.sum", 12.1e6, 14.8e6);
  const Cause found = cause(0.395);
  EXPECT_EQ(found.sentence,
            "tensor cycles +100 % (23.8 -> 47.7 k), instructions +22 % (12.1 -> 14.8 M)");
  for (const std::string& other : found.also) {
    EXPECT_EQ(other.find("same"), std::string::npos) << other;
  }
}

TEST_F(PlantedCauseTest, TheSameProductsInMoreCyclesAreTheSameWork) {
  slow_down(head_, 0.149);
  for (RowProfile* side : {&base_, &head_}) {  // slow_down() has changed both of the head
    EXPECT_NEAR(counter(*side, "pipe_tensor") * counter(*side, "sm__cycles_active.avg"), 61 * 17000,
                1);
  }
  stalled("long_scoreboard", 3.1, 3.56);
  EXPECT_EQ(cause(0.149).sentence,
            "same counted work, tensor pipe 61 -> 53.1 %, stalls on long scoreboard +0.46");
}

TEST_F(PlantedCauseTest, LoadsComeBeforeTheInstructionsThatTheyAre) {
  slow_down(head_, 0.02);
  both("sm__inst_executed.sum", 12.1e6, 13.4e6);
  both("lts__t_sectors_srcunit_tex_op_read", 2.0e6, 2.15e6);
  EXPECT_EQ(cause(0.02).sentence,
            "L2 sectors read +7.5 % (2 -> 2.15 M), instructions +11 % (12.1 -> 13.4 M)");
  both("lts__t_sectors_srcunit_tex_op_read", 2.0e6, 2.04e6);
  EXPECT_EQ(cause(0.02).sentence,
            "instructions +11 % (12.1 -> 13.4 M), L2 sectors read +2.0 % (2 -> 2.04 M)")
      << "less than half as much more";
  stalled("long_scoreboard", 3.1, 3.6);
  EXPECT_TRUE(cause(0.02).sentence.starts_with("stalls on long scoreboard +0.5, instructions"))
      << cause(0.02).sentence;
}

TEST_F(PlantedCauseTest, WhatLimitsTheBlocksIsNamed) {
  slow_down(head_, 0.146);
  for (RowProfile* side : {&base_, &head_}) kernel(*side).dynamic_shared = 48 << 10;
  kernel(base_).registers = 128;
  kernel(head_).registers = 247;
  EXPECT_EQ(cause(0.146).sentence, "blocks per SM 4 -> 2 (registers 128 -> 247/thread)");
  EXPECT_EQ(cause(0.146).numbers.at(1).name, "registers [gather]");
  kernel(head_).registers = 128;
  kernel(head_).dynamic_shared = 96 << 10;
  EXPECT_EQ(cause(0.262).sentence, "blocks per SM 4 -> 2 (shared memory 49152 -> 98304 B/block)");
  kernel(head_).registers = 132;  // a little more, and not what limits
  EXPECT_EQ(cause(0.262).sentence, "blocks per SM 4 -> 2 (shared memory 49152 -> 98304 B/block)");
}

TEST_F(PlantedCauseTest, ATwinDiffersInNothing) {
  kernel(head_).name = "void moe::(anonymous namespace)::gather<128, 32>(Args)";
  const Cause found = explain(base_, head_, {0.005, true});
  EXPECT_EQ(found.kind, CauseKind::nothing);
  EXPECT_TRUE(found.sentence.starts_with("nothing differs: 18 counters within 0.0 %"))
      << found.sentence;
  ASSERT_EQ(found.also.size(), 1u);
  EXPECT_EQ(found.also[0],
            "other kernels of the same shape: instance of gather <128, 64> -> <128, 32>");
}

}  // namespace
}  // namespace moegate
