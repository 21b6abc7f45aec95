// SPDX-License-Identifier: Apache-2.0
// An A/B whose time is up before all rows are decided.
#include "harness/night/ab_fixture.h"

namespace moegate {
namespace {

/// Time that passes while a worker runs, a second a row.
class TimedAbTest : public AbTest {
 protected:
  TimedAbTest() {
    for (const std::string& path : {base_path_, std::string()}) {
      fake_.program(path).touch = [this](const Request&, Result&) { ++now_; };
    }
    write_suite("op = fake\n[a]\nrows = 1, 2, 3, 4\n");
    ab_.plan = {.screen_rounds = 2, .rounds = 4, .extra_rounds = 0};
  }
  void seconds(double budget) {
    ab_.run.deadline = Deadline(budget, [this] { return now_; });
  }
  static std::vector<RowName> all_rows() {
    std::vector<RowName> rows;
    for (int i = 4; i >= 1; --i) {
      for (const char* variant : {"plain", "fused"}) {
        rows.emplace_back(fmt::format("fake/rows={}", i), variant);
      }
    }
    return rows;
  }

  double now_ = 0;
};

TEST_F(TimedAbTest, TheMostSuspiciousRowsAreReplayedAndTheOthersNamed) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 1;
  seconds(35);  // of 64: 8 rows, 4 rounds, 2 sides
  const Comparison result = run();
  EXPECT_LE(now_, 35);
  EXPECT_EQ(result.decided.judged.size(), 4u);
  EXPECT_EQ(result.decided.judged.count(id("plain", 4)), 1u);
  EXPECT_EQ(result.decided.judged.count(id("fused", 4)), 1u);
  EXPECT_EQ(result.decided.judged.count(id("plain", 3)), 1u);
  EXPECT_EQ(result.decided.left_out.size(), 4u);
  EXPECT_EQ(result.decided.left_out.count(id("fused", 1)), 1u) << "with its suite";
  EXPECT_FALSE(measured("rows=1")) << "no time is spent on what cannot be decided";
}

TEST_F(TimedAbTest, WhatIdenticalRowsLeaveOverDecidesOthers) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 1;
  fake_.program("").codes = {{"plain", "c0de"}, {"fused", "new"}};
  fake_.program(base_path_).codes = {{"plain", "c0de"}, {"fused", "old"}};
  seconds(35);
  const Comparison result = run();
  EXPECT_LE(now_, 35);
  EXPECT_EQ(result.decided.identical.size(), 3u);
  EXPECT_EQ(result.decided.judged.size(), 3u) << "a round of an identical row is enough";
  EXPECT_EQ(result.decided.left_out.size(), 2u);
  EXPECT_EQ(result.decided.replaying_s, 2 * 4) << "of each that was left out";
}

TEST_F(TimedAbTest, AfterAScreenTheMostSuspiciousComeFirst) {
  ab_.trust_code = false;
  fake_.program("").spans = {{"fused", 1100}, {"plain", 1030}};
  for (const std::string& path : {base_path_, std::string()}) fake_.program(path).noise = 0;
  seconds(32 + 2 * 4 * 3 + 1);
  const Comparison result = run();
  EXPECT_LE(now_, 32 + 2 * 4 * 3 + 1);
  int replayed = 0;
  for (const CaseId& suspect : result.suspects) {
    if (result.decided.left_out.count(suspect) > 0) continue;
    ++replayed;
    EXPECT_EQ(suspect.variant, "fused");
  }
  EXPECT_EQ(replayed, 3);
  EXPECT_FALSE(result.interrupted);
}

TEST_F(TimedAbTest, AMachineThatGetsSlowerEndsAllTheSame) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 0.1;  // it was
  seconds(30);
  const Comparison result = run();
  EXPECT_LE(now_, 31);
  EXPECT_EQ(result.decided.judged.size() + result.decided.left_out.size(), 8u);
  EXPECT_GT(result.decided.left_out.size(), 0u);
}

TEST_F(TimedAbTest, WithoutABudgetNothingIsLeftOut) {
  ab_.suspects = all_rows();
  EXPECT_TRUE(run().decided.left_out.empty());
}

}  // namespace
}  // namespace moegate
