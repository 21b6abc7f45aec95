// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/exit.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/judge/gate.h"

namespace moegate::test {
namespace {

TEST(Exit, HasTheNumbersThatScriptsKnow) {
  using enum Exit;
  const std::pair<Exit, int> kNumbers[] = {
      {ok, 0},      {internal, 1},     {usage, 2},         {latency, 10},     {accuracy, 11},
      {both, 12},   {coverage, 13},    {inconclusive, 20}, {environment, 21}, {no_baseline, 22},
      {waiver, 24}, {Exit::store, 30}, {interrupted, 130}};
  for (const auto& [exit, number] : kNumbers) EXPECT_EQ(static_cast<int>(exit), number);
}

TEST(Exit, TheGravestWins) {
  using enum Exit;
  EXPECT_EQ(gravest({}), ok);
  EXPECT_EQ(gravest({ok, no_baseline, inconclusive}), inconclusive);
  EXPECT_EQ(gravest({coverage, latency}), latency);
  EXPECT_EQ(gravest({latency, accuracy}), both);
  EXPECT_EQ(gravest({environment, both}), environment);
  EXPECT_EQ(gravest({usage, environment}), usage);
  EXPECT_EQ(gravest({store, internal, usage}), store);
  EXPECT_EQ(gravest({interrupted, store}), interrupted);
}

/// One line per case: verify, controls, run, canaries, gate; the night.
struct Line {
  const char* what;
  NightExits exits;
  Exit night;
};

TEST(Exit, OfANight) {
  using enum Exit;
  const std::optional<Exit> no_gate;
  const Line kLines[] = {
      {"all well", {ok, ok, ok, ok, ok}, ok},
      {"the gate's word is the night's", {ok, ok, ok, ok, latency}, latency},
      {"what the run met is the gate's to judge", {ok, ok, accuracy, ok, ok}, ok},
      {"so are its crashes, which may be waived", {ok, ok, coverage, ok, ok}, ok},
      {"a run that could not measure ends the night",
       {ok, ok, environment, ok, no_gate},
       environment},
      {"a store that fails, beside a wrong output",
       {accuracy, ok, Exit::store, ok, no_gate},
       Exit::store},
      {"interrupted while it measured", {accuracy, ok, interrupted, ok, no_gate}, interrupted},
      {"interrupted while it verified", {interrupted, ok, ok, ok, no_gate}, interrupted},
      {"a missed canary outweighs a regression", {ok, ok, ok, environment, latency}, environment},
      {"a missed canary beside a silent gate", {ok, ok, ok, environment, ok}, environment},
      {"a wrong output beside a gate that passes", {accuracy, ok, ok, ok, ok}, accuracy},
      {"a blind tolerance beside a gate that passes", {ok, accuracy, ok, ok, ok}, accuracy},
      {"wrong and slower are both", {accuracy, ok, ok, ok, latency}, both},
      {"blind and slower are both", {ok, accuracy, ok, ok, latency}, both},
      {"wrong without a baseline", {accuracy, ok, ok, ok, no_baseline}, accuracy},
      {"wrong beside what is open", {accuracy, ok, ok, ok, inconclusive}, accuracy},
      {"wrong beside an expired waiver", {accuracy, ok, ok, ok, waiver}, accuracy},
      {"wrong beside a missing case", {accuracy, ok, ok, ok, coverage}, accuracy},
      {"a crash of the correctness suite", {coverage, ok, ok, ok, ok}, coverage},
      {"a crash of it beside a regression", {coverage, ok, ok, ok, latency}, latency},
      {"the gate could not read its baseline", {ok, ok, ok, ok, usage}, usage},
  };
  for (const Line& line : kLines) EXPECT_EQ(night_exit(line.exits), line.night) << line.what;
}

TEST(Exit, OnlyWhatHasRowsIsJudged) {
  using enum Exit;
  for (const Exit run : {ok, accuracy, coverage}) EXPECT_TRUE(can_be_judged(run));
  for (const Exit run : {internal, usage, environment, Exit::store, interrupted}) {
    EXPECT_FALSE(can_be_judged(run));
  }
}

// What a verdict's rows come to: its sentence, and its exit code by --fail-on.

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
}  // namespace moegate::test
