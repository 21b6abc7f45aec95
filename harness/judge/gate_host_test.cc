// SPDX-License-Identifier: Apache-2.0
// The gate of a host, whose rows are ratios to a yardstick.
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

TEST_F(GateTest, AHostIsJudgedByItsRatios) {
  info_.device.backend = Backend::host;
  info_.device.klass = "nvidia-h200";
  info_.timer = "clock";
  bless_run(add_run());
  EXPECT_NE(read_file(baseline()).find("\tratio=0.5 "), std::string::npos) << read_file(baseline());
  info_.device.uuid = "another-host";
  add_run([](Row& row, int) {
    row.result.span_ns *= 3;  // a slower day says nothing
    return true;
  });
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("2 identical, 2 pass of 4 rows; median change +0.0 %")) << out_;
  add_run([](Row& row, int) {
    if (row.variant == "fused" && row.tokens == "8") row.result.ratio *= 2;
    return true;
  });
  EXPECT_EQ(gate(), 10) << out_;
}

TEST_F(GateTest, ABusyHostIsInconclusiveNotSlower) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  bless_run(add_run());
  const auto busy = [](int from_round) {
    return [=](Row& row, int round) {
      if (round < from_round) return true;
      row.result.status = Status::noisy;
      row.result.why = "the machine was busy: threads had no core for 40 % of their time";
      if (row.variant == "fused") row.result.ratio *= 2;
      return true;
    };
  };
  add_run(busy(0));
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("inconclusive")) << out_;
  EXPECT_TRUE(
      says("about 2.0 times slower, not certain: noisy in 3 of 3 processes: the machine "
           "was busy"))
      << out_;
  add_run(busy(2));  // two quiet processes are evidence, and they see no change
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("2 identical, 2 pass of 4 rows")) << out_;
}

TEST_F(GateTest, ABusyHostThatTimesNothingIsInconclusiveToo) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (row.variant != "fused") return true;
    row.result.status = Status::bad_timer;
    row.result.why = "100 of 100 samples are invalid (preempted)";
    row.result.samples = 0;
    row.result.flags = kPreempted;
    row.result.span_ns = row.result.min_ns = row.result.ratio = 0;
    return true;
  });
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("noisy in 3 of 3 processes: 100 of 100 samples are invalid")) << out_;
  EXPECT_EQ(gate({"--fail-on", "inconclusive"}), 20) << out_;
}

TEST_F(GateTest, RatiosToAnotherYardstickDoNotCompare) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  bless_run(add_run());
  EXPECT_NE(read_file(baseline()).find("by=B0001 yardstick=chain@c4a1\n"), std::string::npos)
      << read_file(baseline());
  const auto slower = [](const char* name, const char* code) {
    return [=](Row& row, int) {
      row.result.yardstick = name;
      row.result.yardstick_code = code;
      if (row.variant == "chain") row.result.code = code;
      row.result.span_ns *= 3;  // both, so that no ratio shows it
      return true;
    };
  };
  for (const auto& [name, code] : {std::pair{"chain", "0ther"}, {"naive", "c4a1"}, {"chain", ""}}) {
    add_run(slower(name, code));
    EXPECT_EQ(gate(), 0) << out_;
    EXPECT_TRUE(says("UNDECIDED: ")) << out_;
    EXPECT_TRUE(says("judged by its own time: its yardstick is")) << out_;
  }
  add_run(slower("chain", "c4a1"));
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("2 identical, 2 pass of 4 rows")) << "a slower day\n" << out_;
}

TEST_F(GateTest, StoredNumbersOfIdenticalCodeThatAreOffAreLeftToAReplay) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  const auto of_ratio = [](double slower) {
    return [=](Row& row, int) {
      row.result.code = "c4a1";
      if (row.variant == "fused") row.result.ratio *= slower;
      return true;
    };
  };
  bless_run(add_run(of_ratio(1)));
  add_run(of_ratio(1.1));
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("4 identical of 4 rows")) << out_;
  add_run(of_ratio(2));
  EXPECT_EQ(gate({"--fail-on", "inconclusive"}), 20) << out_;
  EXPECT_TRUE(says("2 inconclusive")) << out_;
  EXPECT_TRUE(says("the same machine code, launched alike, and +100.0 % off")) << out_;
  add_run(of_ratio(0.5));
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("4 identical of 4 rows")) << "faster\n" << out_;
}

}  // namespace
}  // namespace moegate::test
