// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/look.h"

#include <gtest/gtest.h>

#include "harness/judge/gate.h"

namespace moegate::test {
namespace {

SeedError seed(int64_t number, double truth = 100, uint64_t inputs = 7) {
  SeedError e;
  e.seed = number;
  e.hash = 1;
  e.inputs = inputs;
  e.terms = pack_terms(1, 2, 3);
  e.truth = truth;
  return e;
}

Level level(int round, std::vector<SeedError> seeds) {
  Level l;
  l.suite = "s", l.key = "op/tokens=8", l.op = "op", l.variant = "v", l.round = round;
  l.result.variant = "v";
  l.result.timer = "cupti";
  l.result.judged = Judged::span;
  l.result.span_ns = 10000 + round;
  l.result.seeds = std::move(seeds);
  return l;
}

Sides sides(const std::vector<std::vector<SeedError>>& processes) {
  std::vector<Level> levels;
  for (const auto& seeds : processes)
    levels.push_back(level(static_cast<int>(levels.size()), seeds));
  return collect(levels);
}

const Side& only(const Sides& sides) {
  return sides.begin()->second;
}

TEST(Question, IsComparedSeedBySeed) {
  const Sides base = sides({{seed(1), seed(2)}});
  const auto other = [&](const std::vector<SeedError>& head) {
    return other_question(only(base), only(sides({head})));
  };
  EXPECT_EQ(other({seed(1), seed(2)}), "");
  EXPECT_EQ(other({seed(2)}), "");
  EXPECT_EQ(other({seed(1), seed(2, 101)}), "truth");
  EXPECT_EQ(other({seed(1, 101, 8)}), "inputs") << "from which the truth follows";
  EXPECT_EQ(other({seed(3, 101)}), "") << "no seed in common";
  EXPECT_EQ(other({}), "") << "of a baseline file";
}

TEST(Question, InputsThatNobodyCanRepeatAreNoChange) {
  const Sides base = sides({{seed(1)}, {seed(1)}}), head = sides({{seed(1, 5, 5)}, {seed(1)}});
  EXPECT_FALSE(only(head).asked_alike);
  EXPECT_EQ(other_question(only(base), only(head)), "");
}

TEST(Question, ARowWithAnotherIsNotComparableAndNamedFirst) {
  const std::vector<SeedError> before = {seed(1)}, now = {seed(1, 101)};
  Sides head = sides({now, now});
  for (auto& [round, us] : ByRound(head.begin()->second.by_round)) {
    head.begin()->second.by_round[round] = us / 4;  // far faster
  }
  head.begin()->second.level = evidence_of(head.begin()->second.by_round);
  std::map<std::string, Expectation> expected;
  expected["s"] = {"base", "", false, sides({before, before})};
  const Setting setting{Limits::cuda()};
  const GateResult result = judge(head, expected, setting);
  ASSERT_EQ(result.cases.size(), 1u);
  EXPECT_EQ(result.cases[0].outcome, Outcome::environment);
  EXPECT_FALSE(result.cases[0].latency);
  EXPECT_EQ(result.cases[0].why, "not comparable: its operator has other truth than the base's");
  EXPECT_EQ(result.changed,
            std::vector<std::string>{"operator op has other truth than the base's: 1 row is not "
                                     "comparable"});
  EXPECT_EQ(decide_exit(result, {}, false), Exit::environment);
}

/// What a gate says of rows of these cases whose questions differ in `what`, and of the first one.
std::vector<std::string> told_of(const std::vector<std::string>& keys, const std::string& what) {
  std::vector<Level> before;
  Replayed replayed;
  for (const std::string& key : keys) {
    before.push_back(level(0, {seed(1)}));
    before.back().key = key;
    replayed.other_questions[{"s", key, "v"}] = what;
  }
  const Sides head = collect(before);
  std::map<std::string, Expectation> expected;
  expected["s"] = {"base", "", false, head};
  const GateResult result = judge(head, expected, {Limits::cuda()}, replayed);
  std::vector<std::string> told = result.changed;
  for (const CaseVerdict& v : result.cases) {
    if (v.id.key == keys[0]) told.push_back(v.why);
  }
  return told;
}

TEST(Question, NamesTheRecordingThatMayHaveChanged) {
  const std::string by_ids = "op/rank=1/4@maps/m.npy,routing=shared:replay:ids/,tokens=8";
  const std::string by_loads = "op/routing=load:l.npy", drawn = "op/routing=zipf:0.5";
  using Told = std::vector<std::string>;
  EXPECT_EQ(
      told_of({by_ids}, "cost, inputs"),
      (Told{"recording (rank=1/4@maps/m.npy, routing=shared:replay:ids/) or operator op has other "
            "cost, inputs than the base's: 1 row is not comparable",
            "not comparable: its recording (rank=1/4@maps/m.npy, routing=shared:replay:ids/) or "
            "operator has other cost, inputs than the base's"}));
  EXPECT_EQ(told_of({by_loads}, "tensors")[0],
            "recording (routing=load:l.npy) or operator op has other tensors than the base's: 1 "
            "row is not comparable")
      << "a rank has as many rows as it is given";
  EXPECT_EQ(told_of({by_loads, drawn}, "inputs")[0],
            "operator op has other inputs than the base's: 2 rows are not comparable")
      << "no recording is behind the other row";
  EXPECT_EQ(told_of({by_loads}, "tolerances"),
            (Told{"operator op has other tolerances than the base's: 1 row is not comparable",
                  "not comparable: its operator has other tolerances than the base's"}));
}

TEST(Question, WhatAReplayFindsCounts) {
  std::map<std::string, Expectation> expected;
  const std::vector<SeedError> none;
  expected["s"] = {"baseline", "", false, sides({none, none})};
  const Sides head = sides({{seed(1)}, {seed(1)}});
  Replayed replayed;
  replayed.other_questions[head.begin()->first] = "cost";
  EXPECT_FALSE(replayed.nothing());
  const GateResult result = judge(head, expected, {Limits::cuda()}, replayed);
  EXPECT_EQ(result.cases[0].outcome, Outcome::environment);
  EXPECT_EQ(result.changed.size(), 1u);
}

}  // namespace
}  // namespace moegate::test
