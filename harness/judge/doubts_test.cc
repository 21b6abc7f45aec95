// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/doubts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

const CaseId kRow = {"s", "op/tokens=8", "fused"};

Side side(double level = 10, const std::string& code = "") {
  Side s;
  s.level = {std::log(level), 0.001, 5};
  s.judged = Judged::span;
  s.timer = "cupti";
  s.processes = 5;
  s.code = code;
  for (int round = 0; round < 5; ++round) s.by_round[round] = s.times[round] = level;
  return s;
}

/// Head's row beside base's, and beside `others` that are alike.
struct World {
  Sides base = {{kRow, side()}}, head = {{kRow, side()}};
  Setting setting{Limits::cuda()};
  bool other_device = false;

  void add_others(int n) {
    for (int i = 0; i < n; ++i) {
      const CaseId id{"s", "op/tokens=" + std::to_string(100 + i), "plain"};
      base[id] = head[id] = side();
    }
  }
  CaseVerdict judged(const Replayed& replayed = {}) const {
    Expectation e;
    e.against = "base";
    e.sides = base;
    e.other_device = other_device;
    const GateResult result = judge(head, {{"s", e}}, setting, replayed);
    for (const CaseVerdict& v : result.cases) {
      if (v.id.key == kRow.key && v.id.variant == kRow.variant) return v;
    }
    return {};
  }
};

TEST(Doubts, ASpanBelowTheFloorIsWrong) {
  World w;
  EXPECT_EQ(w.judged().outcome, Outcome::pass);
  w.head[kRow].impossible = 5;
  EXPECT_EQ(w.judged().outcome, Outcome::wrong);
  w.head[kRow].impossible = 2;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "a few processes may have mismeasured";
  w.head[kRow].impossible = 5;
  w.base[kRow].impossible = 1;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "then the ceilings are wrong";
  w.base.clear();
  EXPECT_EQ(w.judged().outcome, Outcome::wrong) << "a new row is no exception";
}

TEST(Doubts, AHostsCeilingsAreBelievedWhereTheyFlagFewRows) {
  World w;
  w.setting.host = true;
  w.add_others(9);
  w.head[kRow].impossible = 5;
  EXPECT_EQ(w.judged().outcome, Outcome::wrong);
  w.head[kRow].level.n = w.head[kRow].impossible = 1;
  EXPECT_NE(w.judged().outcome, Outcome::wrong) << "one process of a night cut short";
  w.head[kRow] = side();
  for (auto& [id, s] : w.head) s.impossible = 5;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "measured under load";
  w.setting.paired = true;
  EXPECT_EQ(w.judged().outcome, Outcome::wrong) << "the base has the same ceilings, and no flag";
}

TEST(Doubts, ColdAsWarmIsNoMeasurement) {
  World w;
  w.setting.paired = true;
  w.head[kRow].warm = 5;
  EXPECT_EQ(w.judged().outcome, Outcome::environment);
  w.base[kRow].warm = 1;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "compute-bound on both sides";
}

TEST(Doubts, MoreNoiseThanTheBaseFails) {
  World w;
  w.setting.paired = true;
  for (Sides* sides : {&w.base, &w.head}) sides->at(kRow).processes = 9;
  w.head[kRow].noisy = 9;
  w.head[kRow].disturbed = true;
  w.head[kRow].why = "71 of 100 samples are preempted";
  EXPECT_EQ(w.judged().outcome, Outcome::regressed);
  EXPECT_NE(w.judged().why.find("9 of 9 processes are noisy, 0 of 9"), std::string::npos);
  w.head[kRow].disturbed = false;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "at a GPU's power limit, but as fast";
  for (Sides* sides : {&w.base, &w.head}) {
    sides->at(kRow).judged = Judged::ratio;
    sides->at(kRow).yardstick = "plain@c4a1";
  }
  EXPECT_EQ(w.judged().outcome, Outcome::regressed) << "on its quiet processes only";
  w.head[kRow].disturbed = true;
  w.base[kRow].noisy = 6;
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive) << "the machine's noise";
  w.base[kRow].noisy = 0;
  w.setting.paired = false;
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive) << "another night's noise";
  w.setting.paired = true;
  w.base[kRow].code = w.head[kRow].code = "c0de";
  EXPECT_EQ(w.judged().outcome, Outcome::identical);
}

TEST(Doubts, AnotherDeviceIsToBlameWhereNobodyKnowsHowItDiffers) {
  CaseVerdict open;
  open.id = kRow;
  come_to(open, Outcome::inconclusive);
  open.stage = 1;
  std::map<std::string, Expectation> expected;
  const auto blamed = [&] {
    GateResult result;
    result.cases = {open};
    blame_device(result, expected, {});
    return result.cases[0].outcome;
  };
  EXPECT_EQ(blamed(), Outcome::inconclusive) << "the same device";
  expected["s"].other_device = true;
  EXPECT_EQ(blamed(), Outcome::environment);
  expected["s"].between = DeviceSpread{};
  EXPECT_EQ(blamed(), Outcome::inconclusive) << "the difference is in the test";
}

TEST(Doubts, StoredNumbersLeaveALongerTailToAReplay) {
  World w;
  w.base[kRow].tail = 1.01;
  w.head[kRow].tail = 1.03;
  EXPECT_EQ(w.judged().outcome, Outcome::pass);
  w.head[kRow].tail = 1.06;
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive);
  EXPECT_TRUE(w.judged().open);
  Replayed replayed;
  replayed.judged[kRow].outcome = Outcome::pass;
  replayed.compared.insert(kRow);
  EXPECT_EQ(w.judged(replayed).outcome, Outcome::pass);
}

TEST(Doubts, StoredNumbersLeaveALargerErrorToAReplay) {
  World w;
  w.base[kRow].error = 1e-3;
  w.head[kRow].error = 1.3e-3;
  EXPECT_EQ(w.judged().outcome, Outcome::pass);
  w.head[kRow].error = 3.9e-3;  // 1.96 bits
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive) << w.judged().why;
  EXPECT_TRUE(w.judged().open);
  Replayed replayed;
  replayed.judged[kRow].outcome = Outcome::pass;
  replayed.compared.insert(kRow);
  EXPECT_EQ(w.judged(replayed).outcome, Outcome::pass) << "the same inputs, the same error";
  replayed.worse[kRow] = "error 3.9e-3 against 1e-3";
  EXPECT_EQ(w.judged(replayed).outcome, Outcome::wrong);
  w.base[kRow].code = w.head[kRow].code = "c0de";
  EXPECT_EQ(w.judged().outcome, Outcome::identical);
}

TEST(Doubts, ARowWithoutABaseFailsWhereItDidNotRun) {
  World w;
  w.base.clear();
  w.head[{"s", "op/tokens=9", "fused"}] = side();
  for (const Status status : {Status::crashed, Status::timeout, Status::bad_timer}) {
    w.head[kRow].status = status;
    EXPECT_EQ(w.judged().outcome, Outcome::missing) << name_of(status);
  }
}

/// Microseconds to enqueue a launch, in five processes.
void enqueued_in(Side& side, double us) {
  for (int round = 0; round < 5; ++round) side.enqueues[round] = us * (1 + 0.01 * round);
}

TEST(Doubts, ALaunchThatTheHostTakesTwiceAsLongToEnqueueHasRegressed) {
  World w;
  enqueued_in(w.base[kRow], 6);
  enqueued_in(w.head[kRow], 14);
  EXPECT_EQ(w.judged().outcome, Outcome::regressed);
  EXPECT_NE(w.judged().why.find("to enqueue a launch"), std::string::npos) << w.judged().why;
  w.head[kRow].enqueues[3] = 6;
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "one process is as quick as the base's";
}

TEST(Doubts, ALittleLongerToEnqueueIsNoRegression) {
  World w;
  enqueued_in(w.base[kRow], 3);
  enqueued_in(w.head[kRow], 7.5);
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "less than 5 us more";
  enqueued_in(w.base[kRow], 30);
  enqueued_in(w.head[kRow], 50);
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "less than twice as long";
  w.base[kRow].enqueues.clear();
  EXPECT_EQ(w.judged().outcome, Outcome::pass) << "unknown";
}

TEST(Doubts, WhatABaselineSaysOfEnqueuingHoldsForTheSameCodeOnItsDevice) {
  World w;
  enqueued_in(w.base[kRow], 6);
  w.base[kRow].code = w.head[kRow].code = "c0de";
  EXPECT_EQ(w.judged().outcome, Outcome::identical);
  enqueued_in(w.head[kRow], 14);
  EXPECT_EQ(w.judged().outcome, Outcome::regressed);
  w.other_device = true;
  EXPECT_EQ(w.judged().outcome, Outcome::identical) << "of another machine";
}

TEST(Doubts, AMachineThatEnqueuesMoreSlowlyFailsNoRow) {
  World w;
  w.add_others(9);
  for (auto& [id, s] : w.base) enqueued_in(s, 6);
  for (auto& [id, s] : w.head) enqueued_in(s, 14);
  EXPECT_EQ(w.judged().outcome, Outcome::pass);
  enqueued_in(w.head[kRow], 30);
  EXPECT_EQ(w.judged().outcome, Outcome::regressed);
}

/// A host's row whose yardstick is another, which stored ratios cannot judge; the base's slowest
/// process took 10 us.
struct HostWorld : World {
  explicit HostWorld(double us) {
    setting = {Limits::host(), /*host=*/true};
    for (Sides* sides : {&base, &head}) (*sides)[kRow] = row(10, "fused", "");
    base[kRow].slowest_us = 10;
    head[kRow] = row(us, "fused@new", "new");
  }
  static Side row(double us, const std::string& yardstick, const std::string& code) {
    Side s = side(us, code);
    s.judged = Judged::ratio;
    s.yardstick = yardstick;
    return s;
  }
};

TEST(FarSlower, WhatNoNoiseMakesFailsWithoutAReplay) {
  EXPECT_EQ(HostWorld(21).judged().outcome, Outcome::regressed);
  EXPECT_EQ(HostWorld(19).judged().outcome, Outcome::inconclusive) << "twice 50 %";
  HostWorld one(21);
  one.head[kRow].times[3] = 19;
  EXPECT_EQ(one.judged().outcome, Outcome::inconclusive) << "in every process";
  HostWorld slow_day(30);
  for (int round = 0; round < 5; ++round) slow_day.head[kRow].by_round[round] = 10;
  EXPECT_EQ(slow_day.judged().outcome, Outcome::inconclusive) << "its ratio is what it was";
  HostWorld busy(21);
  busy.head[kRow].disturbed = true;
  EXPECT_EQ(busy.judged().outcome, Outcome::inconclusive) << "noise is no evidence";
  HostWorld same(21);
  same.head[kRow].code = same.base[kRow].code = "c0de";
  EXPECT_NE(same.judged().outcome, Outcome::regressed);
}

TEST(FarSlower, NotWhereUnchangedCodeIsSlowerToday) {
  HostWorld w(25);
  for (int i = 0; i < 6; ++i) {
    const CaseId id{"s", "op/tokens=" + std::to_string(100 + i), "plain"};
    w.base[id] = HostWorld::row(10, "plain@1", "c0de");
    w.base[id].slowest_us = 10;
    w.head[id] = HostWorld::row(20, "plain@1", "c0de");
  }
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive);
}

TEST(NeverQuiet, ButOfTheSameCodeIsIdentical) {
  World w;
  w.setting = {Limits::host(), /*host=*/true};
  Result r;
  r.variant = "fused";
  r.status = Status::bad_timer;
  r.timer = "cupti";
  r.flags = kPreempted;
  r.code = "c0de";
  w.base[kRow].code = "c0de";
  w.head = collect({{.key = kRow.key, .suite = "s", .variant = "fused", .round = 0, .result = r}});
  EXPECT_EQ(w.judged().outcome, Outcome::identical);
  r.code = "another";
  w.head = collect({{.key = kRow.key, .suite = "s", .variant = "fused", .round = 0, .result = r}});
  EXPECT_EQ(w.judged().outcome, Outcome::inconclusive);
}

CaseVerdict verdict(const std::string& key, Outcome outcome, bool judged) {
  CaseVerdict v;
  v.id = {"s", key, "v"};
  v.why = "said before";
  come_to(v, outcome);
  if (judged) {
    v.latency.emplace();
    v.latency->outcome = outcome;
  }
  return v;
}

Sides measured(const std::vector<std::string>& keys) {
  Sides sides;
  for (const std::string& key : keys) sides[{"s", key, "v"}].processes = 1;
  return sides;
}

/// A row takes 3 s to measure and 24 to replay.
Replayed left_out(const std::vector<std::string>& keys) {
  Replayed replayed;
  for (const std::string& key : keys) replayed.left_out.insert({"s", key, "v"});
  replayed.measuring_s = 3;
  replayed.replaying_s = 24;
  return replayed;
}

TEST(LeftOut, IsOpenWhateverTheNumbersAtHandSay) {
  GateResult result;
  result.cases = {verdict("slower", Outcome::regressed, true),
                  verdict("absent", Outcome::missing, false),
                  verdict("kept", Outcome::regressed, true)};
  leave_open(result, measured({"slower", "kept"}), {}, left_out({"slower", "absent"}),
             Limits::cuda());
  EXPECT_EQ(result.left_out, (std::vector<std::string>{"absent v", "slower v"}));
  EXPECT_EQ(result.cases[0].outcome, Outcome::inconclusive);
  EXPECT_EQ(latency_outcome(result.cases[0]), Outcome::inconclusive);
  EXPECT_EQ(result.cases[0].why, "left out: the time was up before it was replayed; said before");
  EXPECT_EQ(result.cases[1].outcome, Outcome::missing) << "a base has it";
  EXPECT_EQ(result.cases[1].why, "left out: the time was up before it was measured");
  EXPECT_EQ(result.cases[2].outcome, Outcome::regressed);
  count_outcomes(result);
  EXPECT_EQ(decide_exit(result, {}, false), Exit::latency);
}

TEST(LeftOut, WhatIsSlowerThanAnyNoiseStaysSlower) {
  GateResult result;
  result.cases = {verdict("a", Outcome::regressed, true), verdict("b", Outcome::regressed, true)};
  result.cases[0].latency->low = 0.11;  // twice 5 %
  result.cases[1].latency->low = 0.09;
  leave_open(result, measured({"a", "b"}), {}, left_out({"a", "b"}), Limits::cuda());
  EXPECT_EQ(result.cases[0].outcome, Outcome::regressed);
  EXPECT_EQ(result.cases[1].outcome, Outcome::inconclusive);
  EXPECT_EQ(result.left_out.size(), 2u);
}

TEST(LeftOut, AWrongOutputStaysWrong) {
  GateResult result;
  result.cases = {verdict("a", Outcome::wrong, true)};
  leave_open(result, measured({"a"}), {}, left_out({"a"}), Limits::cuda());
  EXPECT_EQ(result.cases[0].outcome, Outcome::wrong);
}

TEST(LeftOut, AnInterruptionLeavesOpenWhateverTheNumbersSay) {
  GateResult result;
  result.cases = {verdict("a", Outcome::regressed, true)};
  result.cases[0].latency->low = 0.11;
  Replayed interrupted = left_out({"a", "never begun"});
  interrupted.interrupted = true;
  leave_open(result, measured({"a"}), {}, interrupted, Limits::cuda());
  ASSERT_EQ(result.cases.size(), 2u);
  for (const CaseVerdict& v : result.cases) EXPECT_EQ(v.outcome, Outcome::inconclusive);
  EXPECT_EQ(decide_exit(result, {}, false), Exit::interrupted);
}

TEST(LeftOut, SaysHowMuchTimeWouldHaveDecidedTheRest) {
  GateResult result;
  result.suites["s"].against = "a baseline";
  result.cases = {verdict("open", Outcome::inconclusive, true),
                  verdict("absent", Outcome::missing, false)};
  leave_open(result, measured({"open"}), {}, left_out({"open", "absent"}), Limits::cuda());
  EXPECT_EQ(result.more_s, 27);
  count_outcomes(result);
  EXPECT_NE(
      sentence(result, Exit::coverage).find("; 2 left out for want of time (about 27 s more)"),
      std::string::npos)
      << sentence(result, Exit::coverage);
}

/// A base of the same program in which variant v has code c0de in cases op/a and op/b.
class KnownByProgram : public testing::Test {
 protected:
  KnownByProgram() {
    for (const char* key : {"op/a", "op/b"}) {
      base().sides[{"s", key, "v"}].code = "c0de";
    }
    base().against = "a baseline";
    base().same_program = true;
    head_[{"s", "op/a", "v"}].code = "c0de";
    head_[{"s", "op/a", "v"}].processes = 1;
  }
  Expectation& base() { return expected_["s"]; }
  Outcome outcome() {
    GateResult result;
    result.cases = {verdict("op/b", Outcome::missing, false)};
    leave_open(result, head_, expected_, left_out({"op/b"}), Limits::cuda());
    EXPECT_EQ(result.left_out.empty(), result.cases[0].outcome == Outcome::identical);
    return result.cases[0].outcome;
  }

  Sides head_;
  std::map<std::string, Expectation> expected_;
};

TEST_F(KnownByProgram, ARowOfAVariantThatLaunchesWhatItDid) {
  EXPECT_EQ(outcome(), Outcome::identical);
}

TEST_F(KnownByProgram, NotOfAnotherProgram) {
  base().same_program = false;
  EXPECT_EQ(outcome(), Outcome::missing);
}

TEST_F(KnownByProgram, NotWhereAnotherRowOfTheVariantChanged) {
  base().sides[{"s", "op/c", "v"}].code = "c0de";
  head_[{"s", "op/c", "v"}].code = "another";
  head_[{"s", "op/c", "v"}].processes = 1;
  EXPECT_EQ(outcome(), Outcome::missing);
}

TEST_F(KnownByProgram, NotWhereEveryCaseHasCodeOfItsOwn) {
  base().sides[{"s", "op/b", "v"}].code = "of b";
  EXPECT_EQ(outcome(), Outcome::missing);
}

TEST_F(KnownByProgram, NotWhereNothingOfTheVariantWasMeasured) {
  head_.clear();
  EXPECT_EQ(outcome(), Outcome::missing);
}

TEST_F(KnownByProgram, NotByAnotherOperatorsRow) {
  base().sides[{"s", "another/a", "v"}].code = "c0de";
  head_[{"s", "another/a", "v"}] = head_[{"s", "op/a", "v"}];
  head_.erase({"s", "op/a", "v"});
  EXPECT_EQ(outcome(), Outcome::missing);
}

TEST(LeftOut, WhatNobodyKnowsIsMissingOnceTheCandidateIsStalled) {
  std::map<std::string, Expectation> expected;
  expected["s"].against = "a candidate";
  GateResult growing, stalled;
  leave_open(growing, {}, expected, left_out({"new"}), Limits::cuda());
  EXPECT_TRUE(growing.cases.empty());
  EXPECT_EQ(growing.left_out.size(), 1u);
  expected["s"].stalled = true;
  leave_open(stalled, {}, expected, left_out({"new"}), Limits::cuda());
  ASSERT_EQ(stalled.cases.size(), 1u);
  EXPECT_EQ(stalled.cases[0].outcome, Outcome::missing);
}

TEST(LeftOut, IsCountedInTheFirstLine) {
  GateResult result;
  result.suites["s"].against = "a baseline";
  result.cases = {verdict("a", Outcome::pass, true), verdict("b", Outcome::pass, true)};
  leave_open(result, measured({"a", "b"}), {}, left_out({"b"}), Limits::cuda());
  count_outcomes(result);
  EXPECT_NE(sentence(result, Exit::ok).find("; 1 left out for want of time"), std::string::npos)
      << sentence(result, Exit::ok);
}

}  // namespace
}  // namespace moegate::test
