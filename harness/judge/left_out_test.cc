// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/left_out.h"

#include <gtest/gtest.h>

#include "harness/judge/verdict_fixture.h"

namespace moegate {
namespace {

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
}  // namespace moegate
