// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/cause.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/cause/cause_fixture.h"

namespace moegate::test {
namespace {

/// A pair of profiles, whose head a test changes.
class CauseTest : public testing::Test {
 protected:
  Cause cause(double effect) const { return explain(base_, head_, {effect}); }
  KernelRow& kernel() { return head_.measured->kernels[0]; }

  RowProfile base_ = row_profile(), head_ = row_profile();
};

TEST_F(CauseTest, TwoProcessesOfOneProgramDoNotDiffer) {
  // As far as two readings of one program were seen apart.
  for (const char* name :
       {"dram__bytes_read", "lts__t_sectors_srcunit_tex_op_read", "inst_executed.sum"}) {
    counter(head_, name) *= 1.0001;
  }
  for (const char* name : {"long_scoreboard", "pipe_tensor", "warps_active", "cycles_active.max"}) {
    counter(head_, name) *= 1.01;
  }
  counter(head_, "bytes_write") += 12000;
  counter(head_, "local_ld") += 40;
  head_.measured->sm_mhz -= 5;
  for (const double effect : {0.0, 0.003, -0.003, 0.02, -0.02}) {
    const Cause found = cause(effect);
    EXPECT_EQ(found.kind, CauseKind::nothing) << effect << " " << found.sentence;
    EXPECT_EQ(
        found.sentence,
        "nothing differs: 18 counters within 1.0 %, the same code, launches, resources, clock");
    EXPECT_TRUE(found.also.empty());
  }
}

TEST_F(CauseTest, TimesThatAreJudgedEqualNeedNoReason) {
  counter(head_, "warps_active") *= 0.7;
  EXPECT_EQ(explain(base_, head_, {0.012, false}).kind, CauseKind::unknown);
  const Cause found = explain(base_, head_, {0.012, true});
  EXPECT_EQ(found.kind, CauseKind::nothing);
  EXPECT_TRUE(found.sentence.starts_with("nothing differs: 18 counters within 30.0 %"))
      << found.sentence;
  counter(head_, "dram__bytes_read") *= 0.9;
  EXPECT_EQ(explain(base_, head_, {0.012, true}).sentence,
            "DRAM bytes read -10 % (16.8 -> 15.1 MB)")
      << "the work differs all the same";
}

TEST_F(CauseTest, OneThatSpills) {
  slow_down(head_, 0.2);
  kernel().local_bytes = 24;
  counter(head_, "local_ld") = 1.2e6;
  const Cause found = cause(0.2);
  EXPECT_EQ(found.kind, CauseKind::resources);
  EXPECT_EQ(found.sentence, "local memory 0 -> 24 B/thread (spills, indexed arrays or calls)");
  ASSERT_FALSE(found.also.empty());
  EXPECT_EQ(found.also[0], "loads from local memory 0 -> 1.2 M");
  ASSERT_FALSE(found.numbers.empty());
  EXPECT_EQ(found.numbers[0].name, "local memory [gather]") << "those of the sentence come first";
  EXPECT_EQ(found.numbers[0].head, 24);

  std::swap(base_, head_);
  EXPECT_EQ(cause(-0.17).sentence, "local memory 24 -> 0 B/thread");
}

TEST_F(CauseTest, AnOlderProgramsLocalMemoryIsUnknownAndNoSpill) {
  slow_down(head_, 0.2);
  base_.measured->kernels[0].local_bytes = -1;
  kernel().local_bytes = 24;
  EXPECT_NE(cause(0.2).kind, CauseKind::resources) << cause(0.2).sentence;
}

TEST_F(CauseTest, LocalMemoryThatOnlyTheCountingProcessKnows) {
  slow_down(head_, 0.2);
  for (RowProfile* side : {&base_, &head_}) {
    side->counted->kernels = side->measured->kernels;
    side->measured->kernels[0].local_bytes = -1;
  }
  head_.counted->kernels[0].local_bytes = 24;
  EXPECT_EQ(cause(0.2).sentence, "local memory 0 -> 24 B/thread (spills, indexed arrays or calls)");
  head_.counted->kernels[0].name = "another";  // then it is of another launch
  EXPECT_NE(cause(0.2).kind, CauseKind::resources);
}

TEST_F(CauseTest, OneThatReadsItsInputTwice) {
  slow_down(head_, 0.5);
  counter(head_, "dram__bytes_read") *= 1.5;
  counter(head_, "lts__t_sectors_srcunit_tex_op_read") *= 2;
  counter(head_, "sm__inst_executed") *= 1.03;
  const Cause found = cause(0.5);
  EXPECT_EQ(found.kind, CauseKind::work);
  EXPECT_EQ(found.sentence,
            "L2 sectors read +100 % (0.54 -> 1.08 M), DRAM bytes read +50 % (16.8 -> 25.2 MB)")
      << "3 % more instructions do not make it 50 % slower";
}

TEST_F(CauseTest, MoreOfASmallPartIsLittle) {
  counter(head_, "bytes_write") *= 1.1;  // 0.6 % of all
  slow_down(head_, 0.03);
  EXPECT_EQ(cause(0.03).kind, CauseKind::rate) << cause(0.03).sentence;
  counter(head_, "bytes_write") *= 1.2;
  EXPECT_EQ(cause(0.03).sentence, "DRAM bytes written +32 % (1.1 -> 1.45 MB)");
}

TEST_F(CauseTest, FewerBytesMakeNothingSlower) {
  counter(head_, "dram__bytes_read") *= 0.9;
  EXPECT_EQ(cause(0.05).sentence,
            "unknown: DRAM bytes read 16.8 -> 15.1 MB, which does not explain it; the same code, "
            "launches, resources, clock");
  EXPECT_EQ(cause(-0.05).sentence, "DRAM bytes read -10 % (16.8 -> 15.1 MB)");
}

TEST_F(CauseTest, OneWithBankConflicts) {
  slow_down(head_, 0.3);
  counter(head_, "bank_conflicts") = 900e3;  // of 2.2 M cycles on 132 multiprocessors
  counter(head_, "short_scoreboard") += 3 * 900e3;
  const Cause found = cause(0.3);
  EXPECT_EQ(found.kind, CauseKind::rate);
  EXPECT_EQ(
      found.sentence,
      "same counted work, bank conflicts 1.2 -> 900 k, tensor pipe 61 -> 46.9 %, stalls on short "
      "scoreboard +3");

  counter(head_, "bank_conflicts") = 20e3;
  EXPECT_EQ(cause(0.3).sentence.find("bank conflicts"), std::string::npos)
      << "20 k cycles of 2.2 M are no 30 %";
}

TEST_F(CauseTest, OneWithHalfTheBlocksPerMultiprocessor) {
  slow_down(head_, 0.3);
  base_.measured->kernels[0].dynamic_shared = 100 << 10;
  kernel().dynamic_shared = 120 << 10;
  EXPECT_EQ(cause(0.3).kind, CauseKind::resources);
  EXPECT_EQ(cause(0.3).sentence, "blocks per SM 2 -> 1 (shared memory 102400 -> 122880 B/block)");
  EXPECT_NE(cause(-0.3).kind, CauseKind::resources) << "fewer blocks make nothing faster";
  kernel().dynamic_shared = 110 << 10;
  EXPECT_EQ(cause(0.3).kind, CauseKind::rate) << "as many fit";

  kernel().dynamic_shared = 150 << 10;
  base_.device.klass = head_.device.klass = "nvidia-unheard-of";
  EXPECT_EQ(cause(0.3).sentence, "shared memory 102400 -> 153600 B/block")
      << "where it is not known how many fit";
}

TEST_F(CauseTest, LowOccupancyIsNoCause) {
  slow_down(head_, 0.1);
  counter(base_, "warps_active") = 60;
  for (const char* pipe :
       {"pipe_tensor", "issue_active", "cycles_active.max", "sm__cycles_active.avg"}) {
    counter(head_, pipe) = counter(base_, pipe);
  }
  EXPECT_NE(cause(0.1).sentence.find("unknown: active warps 60 -> 12 %"), std::string::npos)
      << cause(0.1).sentence;
}

TEST_F(CauseTest, OneThatOnlyWaits) {
  slow_down(head_, 0.25);
  counter(head_, "sleeping") = 9 * 900e3;
  const Cause found = cause(0.25);
  EXPECT_EQ(found.kind, CauseKind::rate);
  EXPECT_EQ(found.sentence, "same counted work, tensor pipe 61 -> 48.8 %, stalls on sleeping +9");

  head_.stalled = Result();
  head_.stalled->stalls = {{0, 0x40, "LDG.E R2", "", "long_scoreboard", 900},
                           {0, 0x80, "NANOSLEEP 0x64", "gather.cu:12", "sleeping", 500}};
  EXPECT_EQ(
      cause(0.25).sentence,
      "same counted work, tensor pipe 61 -> 48.8 %, stalls on sleeping +9 (most at NANOSLEEP 0x64, "
      "gather.cu:12)");
}

TEST_F(CauseTest, ALowerClock) {
  slow_down(head_, 0.138);
  head_.counted = counted_row();  // as many cycles
  head_.measured->sm_mhz = 1740;
  EXPECT_EQ(cause(0.138).kind, CauseKind::clock);
  EXPECT_EQ(cause(0.138).sentence, "clock only: 1980 -> 1740 MHz");
  head_.counted.reset();
  EXPECT_EQ(cause(0.138).sentence, "clock: 1980 -> 1740 MHz (counters were not looked at)");
  EXPECT_EQ(cause(-0.138).kind, CauseKind::unknown) << "a lower clock makes nothing faster";
}

TEST_F(CauseTest, WiderGapsBetweenLaunches) {
  for (RowProfile* side : {&base_, &head_}) {
    side->measured->kernels.push_back(kernel_row("scatter", 2000, 400));
    side->measured->busy_ns = 12000;
    side->measured->span_ns = 12400;
  }
  head_.measured->kernels[1].gap_ns = 1600;
  head_.measured->span_ns = 13600;
  counter(head_, "pipe_tensor") *= 0.9;
  EXPECT_EQ(cause(0.097).kind, CauseKind::gaps);
  EXPECT_EQ(cause(0.097).sentence, "gaps between launches 0.4 -> 1.6 us, most before scatter");
}

TEST_F(CauseTest, OtherLaunches) {
  head_.measured->path = "split";
  EXPECT_EQ(cause(0.1).sentence, "path none -> split");
  head_ = row_profile();
  kernel().name = "void moe::(anonymous namespace)::gather<128, 32>(Args)";
  kernel().grid = "528x1x1";
  EXPECT_EQ(cause(0.1).kind, CauseKind::launches);
  EXPECT_EQ(cause(0.1).sentence,
            "instance of gather <128, 64> -> <128, 32>, grid of gather 264x1x1 -> 528x1x1");
  head_ = row_profile();
  head_.measured->kernels.push_back(kernel_row("memset", 900));
  EXPECT_EQ(cause(0.1).sentence, "launches 1 -> 2: with memset");
  head_ = row_profile();
  kernel().name = "moe::scatter(Args)";
  EXPECT_EQ(cause(0.1).sentence, "other kernels of the same shape: gather -> scatter");
  counter(head_, "dram__bytes_read") *= 1.1;
  EXPECT_EQ(cause(0.1).sentence, "DRAM bytes read +10 % (16.8 -> 18.5 MB)")
      << "a name alone explains nothing";
}

TEST_F(CauseTest, AnotherInstanceOfTheSameShapeIsTheLastResort) {
  slow_down(head_, 0.2);
  kernel().name = "void moe::(anonymous namespace)::gather<128, 32>(Args)";
  EXPECT_EQ(cause(0.2).kind, CauseKind::rate) << cause(0.2).sentence;
  head_ = row_profile();
  kernel().name = "void moe::(anonymous namespace)::gather<128, 32>(Args)";
  EXPECT_EQ(cause(0.2).sentence,
            "other kernels of the same shape: instance of gather <128, 64> -> <128, 32>");
}

TEST_F(CauseTest, ConflictsComeBeforeTheInstructionsThatMakeThem) {
  slow_down(head_, 0.3);
  counter(head_, "bank_conflicts") = 900e3;
  counter(head_, "sm__inst_executed") *= 1.2;
  EXPECT_EQ(cause(0.3).kind, CauseKind::work);
  EXPECT_EQ(cause(0.3).sentence, "bank conflicts 1.2 -> 900 k, instructions +20 % (0.9 -> 1.08 M)");
}

TEST_F(CauseTest, KernelsInAnotherOrderAreTheSame) {
  base_.measured->kernels.push_back(kernel_row("scatter", 2000));
  base_.measured->kernels[1].grid = "8x1x1";
  head_ = base_;
  std::swap(head_.measured->kernels[0], head_.measured->kernels[1]);
  EXPECT_EQ(cause(0).kind, CauseKind::nothing) << cause(0).sentence;
}

TEST_F(CauseTest, WhatNobodyLookedAtIsUnknown) {
  head_.counted.reset();
  EXPECT_EQ(cause(0.1).kind, CauseKind::unknown);
  EXPECT_EQ(cause(0.1).sentence,
            "unknown: of the head no counters; the same code, launches, resources, clock");
  base_ = head_ = {};
  EXPECT_EQ(cause(0.1).sentence, "unknown: of both sides a host's counters are not read");
  EXPECT_TRUE(cause(0.1).numbers.empty());
}

TEST_F(CauseTest, NumbersAreAllThatBothSidesState) {
  base_.counted->metrics.push_back({"dram__bytes_read.sum", "bytes", 5, 0});
  head_.counted->metrics.push_back({"dram__bytes_read.sum", "bytes", 6, 0});
  head_.counted->metrics.push_back({"only.head", "", 1});
  base_.counted->metrics.push_back({"no.number", "", 1});
  head_.counted->metrics.push_back({"no.number", "", std::nan("")});
  base_.metered = head_.metered = Result();
  base_.metered->metrics = head_.metered->metrics = {{"energy", "mJ", 3}};
  base_.stalled = head_.stalled = Result();
  base_.stalled->stalls = {{0, 0, "", "", "wait", 30}, {0, 8, "", "", "barrier", 10}};
  head_.stalled->stalls = {{0, 0, "", "", "wait", 30}};
  const Cause found = cause(0.1);
  const auto number = [&](const std::string& name) {
    for (const CauseNumber& n : found.numbers) {
      if (n.name == name) return fmt::format("{:g} -> {:g} {}", n.base, n.head, n.unit);
    }
    return std::string("absent");
  };
  EXPECT_EQ(number("dram__bytes_read.sum"), "1.68e+07 -> 1.68e+07 bytes");
  EXPECT_EQ(number("dram__bytes_read.sum [gather]"), "5 -> 6 bytes");
  EXPECT_EQ(number("registers [gather]"), "64 -> 64 ");
  EXPECT_EQ(number("energy"), "3 -> 3 mJ");
  EXPECT_EQ(number("samples waiting: barrier"), "25 -> 0 %");
  EXPECT_EQ(number("only.head"), "absent");
  EXPECT_EQ(number("no.number"), "absent");
}

// Causes that were planted in a bf16 GEMM by mma.sync, with what was counted of it on an H200
// (driver 580.159, 2026-11-24, commit 8f95c61).

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
}  // namespace moegate::test
