// SPDX-License-Identifier: Apache-2.0
// Which cases go on, and which share of alpha each look spends. tests/simulation/ simulates the
// whole rule.
#include "harness/judge/replay_rule.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/judge/pairs_fixture.h"

namespace moegate {
namespace {

Judgement screened(Outcome outcome, double p = 1, double p_faster = 1) {
  Judgement j;
  j.outcome = outcome;
  j.p = p;
  j.p_faster = p_faster;
  return j;
}

TEST(ReplayRule, WhatGoesOnAfterTheScreen) {
  const std::vector<Judgement> all{
      screened(Outcome::pass),        screened(Outcome::pass, 0.049),
      screened(Outcome::pass, 0.05),  screened(Outcome::pass, 1, 0.049),
      screened(Outcome::regressed),   screened(Outcome::improved),
      screened(Outcome::missing),     screened(Outcome::inconclusive),
      screened(Outcome::identical),   screened(Outcome::wrong, 0.001),
      screened(Outcome::environment), screened(Outcome::fresh)};
  EXPECT_EQ(suspects(all), (std::vector<size_t>{1, 3, 4, 5, 7}));
  EXPECT_TRUE(suspects(std::vector<Judgement>{}).empty());
}

TEST(ReplayRule, EachLookSpendsHalfOfAlpha) {
  const std::vector<PairedQuestion> family{pairs(0.022, 0.004, 4)};
  const double p = judge_pairs(family, Limits::cuda())[0].p;
  Limits limits = Limits::cuda();
  limits.alpha = 1.5 * p;
  EXPECT_EQ(confirm(family, limits, {4, 4, 0}).judgements[0].outcome, Outcome::regressed);
  EXPECT_TRUE(confirm(family, limits, {4, 4, 0}).undecided.empty());
  const Confirmed half = confirm(family, limits, {4, 4, 24});
  EXPECT_EQ(half.judgements[0].outcome, Outcome::inconclusive);
  EXPECT_EQ(half.undecided, std::vector<size_t>{0});
  EXPECT_EQ(extend(half, family, limits)[0].outcome, Outcome::inconclusive);
  limits.alpha = 2.1 * p;
  EXPECT_EQ(confirm(family, limits, {4, 4, 24}).judgements[0].outcome, Outcome::regressed);
  EXPECT_EQ(extend(half, family, limits)[0].outcome, Outcome::regressed);
}

TEST(ReplayRule, WithoutAnExtensionUndecidedStaysInconclusive) {
  const std::vector<PairedQuestion> family{pairs(0.02, 0.02, 4)};
  const Confirmed c = confirm(family, Limits::cuda(), {4, 4, 0});
  EXPECT_EQ(c.judgements[0].outcome, Outcome::inconclusive);
  EXPECT_TRUE(c.undecided.empty());
}

TEST(ReplayRule, TheExtensionJudgesOnlyTheUndecided) {
  const std::vector<PairedQuestion> family{pairs(0, 0.001, 12), pairs(0.02, 0.02, 12),
                                           pairs(0.05, 0.001, 12), pairs(0.02, 0.02, 12)};
  const Confirmed first = confirm(family, Limits::cuda(), {});
  ASSERT_EQ(first.undecided, (std::vector<size_t>{1, 3}));
  const std::vector<PairedQuestion> again{pairs(0, 0.001, 24), pairs(0.04, 0.001, 24)};
  const auto last = extend(first, again, Limits::cuda());
  ASSERT_EQ(last.size(), 4u);
  EXPECT_EQ(last[0].why, first.judgements[0].why);
  EXPECT_EQ(last[1].outcome, Outcome::pass) << last[1].why;
  EXPECT_EQ(last[2].outcome, Outcome::regressed) << last[2].why;
  EXPECT_EQ(last[3].outcome, Outcome::regressed) << last[3].why;
  EXPECT_NE(last[3].why.find("24 paired rounds"), std::string::npos) << last[3].why;
  EXPECT_THROW(extend(first, family, Limits::cuda()), std::invalid_argument);
}

}  // namespace
}  // namespace moegate
