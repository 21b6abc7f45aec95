// SPDX-License-Identifier: Apache-2.0
// What a verdict's rows come to: its sentence, and its exit code by --fail-on.
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/judge/gate.h"

namespace moegate {
namespace {

TEST(FailOn, ChangedMeansRowsOfOtherCodeThatStayOpen) {
  GateResult result;
  result.suites["s"].against = "base";
  for (const Outcome outcome : {Outcome::pass, Outcome::pass, Outcome::inconclusive}) {
    CaseVerdict v;
    v.outcome = outcome;
    v.latency = Judgement{};
    result.cases.push_back(v);
  }
  count_outcomes(result);
  const FailOn changed = parse_fail_on("latency,changed"), latency = parse_fail_on("latency");
  EXPECT_EQ(decide_exit(result, changed, false), Exit::inconclusive);
  EXPECT_EQ(decide_exit(result, latency, false), Exit::ok);
  result.cases[2].same_code = true;
  EXPECT_EQ(decide_exit(result, changed, false), Exit::ok);
  result.cases[2].off = true;
  EXPECT_EQ(decide_exit(result, changed, false), Exit::inconclusive);
}

TEST(Undecided, IsWhatDecidedFewerThanHalf) {
  GateResult result;
  result.suites["s"].against = "base";
  const auto add = [&](Outcome outcome, bool yardstick = false) {
    CaseVerdict v;
    v.outcome = outcome;
    v.yardstick = yardstick;
    v.against = "base";
    if (outcome == Outcome::pass) v.latency = Judgement{};
    result.cases.push_back(v);
  };
  for (int i = 0; i < 5; ++i) add(Outcome::inconclusive);
  for (int i = 0; i < 4; ++i) add(Outcome::pass);
  for (int i = 0; i < 9; ++i) add(Outcome::identical, true);
  EXPECT_TRUE(undecided(result));
  EXPECT_EQ(sentence(result, Exit::ok).find("UNDECIDED: "), 0u);
  add(Outcome::identical);
  EXPECT_FALSE(undecided(result));
  EXPECT_EQ(sentence(result, Exit::ok).find("PASS: "), 0u);
}

TEST(FailOn, ANightThatDecidedFewerThanHalfIsNoPass) {
  GateResult result;
  result.suites["s"].against = "base";
  const auto add = [&](Outcome outcome) {
    CaseVerdict v;
    v.outcome = outcome;
    v.against = "base";
    result.cases.push_back(v);
    count_outcomes(result);
  };
  FailOn night;
  night.undecided = true;
  add(Outcome::inconclusive);
  add(Outcome::inconclusive);
  add(Outcome::identical);
  EXPECT_EQ(decide_exit(result, night, false), Exit::inconclusive);
  EXPECT_EQ(decide_exit(result, {}, false), Exit::ok) << "a gate";
  add(Outcome::identical);
  EXPECT_EQ(decide_exit(result, night, false), Exit::ok);
  for (int i = 0; i < 5; ++i) add(Outcome::fresh);
  EXPECT_EQ(decide_exit(result, night, false), Exit::ok) << "a candidate that grows";
}

TEST(FailOn, Parses) {
  EXPECT_TRUE(parse_fail_on("inconclusive").inconclusive);
  EXPECT_FALSE(parse_fail_on("inconclusive").latency);
  for (const char* bad : {"", "latency,", ",latency", "speed"})
    EXPECT_THROW(parse_fail_on(bad), Error) << bad;
}

}  // namespace
}  // namespace moegate
