// SPDX-License-Identifier: Apache-2.0
// The rule over paired rounds: its arithmetic. tests/simulation/ simulates what it buys.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/pairs_fixture.h"

namespace moegate {
namespace {

Judgement judge(const PairedQuestion& q, const Limits& limits = Limits::cuda()) {
  return judge_pairs(std::vector{q}, limits).at(0);
}

TEST(Pairs, ModeratedStatisticIsTheWrittenOne) {
  // s^2 = 4 * 0.2^2 / 3, prior 2 * 0.3^2 with df 6, all in %^2; t(.95, 9) = 1.8331129.
  const Judgement j = judge(pairs(0.03, 0.002));
  const double se = std::sqrt((6 * 18e-6 + 3 * (16e-6 / 3)) / 9 / 4);
  EXPECT_NEAR(std::log1p(j.effect), 0.03, 1e-12);
  EXPECT_NEAR(std::log1p(j.high), 0.03 + 1.8331129 * se, 1e-8);
  EXPECT_NEAR(std::log1p(j.low), 0.03 - 1.8331129 * se, 1e-8);
  EXPECT_EQ(j.df, 9);
  EXPECT_EQ(j.outcome, Outcome::regressed) << j.why;
  EXPECT_NE(j.why.find("4 paired rounds that spread by 0.37 %"), std::string::npos) << j.why;
}

TEST(Pairs, TenCasesFitTheirOwnPrior) {
  // Equal variances: prior df infinite, held at 10 * 3; its variance s^2 exp(log(1.5) -
  // digamma(1.5)), the latter 0.0364899740. t(.95, 33) = 1.6923603.
  const std::vector<PairedQuestion> family(10, pairs(0, 0.002));
  const Judgement j = judge_pairs(family, Limits::cuda())[9];
  const double own = 16e-6 / 3, prior = own * 1.5 * std::exp(-0.0364899740);
  EXPECT_EQ(j.df, 33);
  EXPECT_NEAR(std::log1p(j.high), 1.6923603 * std::sqrt((30 * prior + 3 * own) / 33 / 4), 1e-8);
  const std::vector<PairedQuestion> nine(9, pairs(0, 0.002));
  EXPECT_EQ(judge_pairs(nine, Limits::cuda())[0].df, 9);
}

TEST(Pairs, ThePriorIsFittedFromCasesMeasuredInEveryRound) {
  std::vector<PairedQuestion> family(10, pairs(0, 0.002));
  family.push_back(pairs(0, 0.002, 2));
  const auto judged = judge_pairs(family, Limits::cuda());
  EXPECT_EQ(judged[0].df, 30 + 3);
  EXPECT_EQ(judged[10].df, 30 + 1);
  family[0] = pairs(0, 0.002, 2);
  EXPECT_EQ(judge_pairs(family, Limits::cuda())[1].df, 6 + 3);
}

TEST(Pairs, ThePriorHasAFloor) {
  // All ratios on one tick: half the expected sd, 2 (0.15 %)^2, remains of the prior.
  const std::vector<PairedQuestion> family(10, pairs(0, 0));
  const Judgement j = judge_pairs(family, Limits::cuda())[0];
  EXPECT_NEAR(std::log1p(j.high), 1.6923603 * std::sqrt(30 * 4.5e-6 / 33 / 4), 1e-8);
  EXPECT_EQ(j.outcome, Outcome::pass) << j.why;
}

TEST(Pairs, ACaseMuchNoisierThanThePriorIsJudgedByItsOwnSpread) {
  // sd 4 % / sqrt(3) * 2: df 3, t(.95, 3) = 2.3533634, nothing borrowed.
  const Judgement j = judge(pairs(0, 0.04));
  EXPECT_NEAR(std::log1p(j.high), 2.3533634 * std::sqrt(0.0064 / 3 / 4), 1e-8);
  EXPECT_EQ(j.outcome, Outcome::inconclusive) << j.why;
  EXPECT_TRUE(j.blind);
}

TEST(Pairs, BothDirectionsAndEquality) {
  const Judgement slower = judge(pairs(0.03, 0.002, 12)), faster = judge(pairs(-0.03, 0.002, 12));
  EXPECT_EQ(slower.outcome, Outcome::regressed) << slower.why;
  EXPECT_EQ(faster.outcome, Outcome::improved) << faster.why;
  EXPECT_NEAR(slower.p / faster.p_faster, 1, 1e-9);
  EXPECT_LT(slower.p, 1e-4);
  EXPECT_GT(faster.p, 0.999);
  EXPECT_EQ(judge(pairs(0, 0.002, 12)).outcome, Outcome::pass);
  EXPECT_EQ(judge(pairs(0.012, 0.0005, 12)).outcome, Outcome::pass);  // sure, but small
  EXPECT_EQ(judge(pairs(0.018, 0.01, 4)).outcome, Outcome::inconclusive);
}

TEST(Pairs, TheMarginIsAtLeastTwoTicks) {
  PairedQuestion q = pairs(0.03, 0.002, 12);
  q.tick = 0.016;
  EXPECT_NE(judge(q).outcome, Outcome::regressed);
}

TEST(Pairs, OneRoundDecidesNothing) {
  for (const int rounds : {0, 1}) {
    const Judgement j =
        judge(PairedQuestion{std::vector<double>(static_cast<size_t>(rounds), 1.0)});
    EXPECT_EQ(j.outcome, Outcome::inconclusive);
    EXPECT_TRUE(j.blind);
    EXPECT_NE(j.why.find("--rounds"), std::string::npos) << j.why;
  }
  EXPECT_TRUE(judge_pairs({}, Limits::cuda()).empty());
}

TEST(Pairs, ALargerFamilyDemandsMore) {
  Limits limits = Limits::cuda();
  limits.fail_at = limits.margin;  // the test, not the estimate, sets what can be detected
  std::vector<PairedQuestion> family{pairs(0.022, 0.004)};
  family.resize(9, pairs(0, 0.004));  // below ten: the same prior
  const auto judged = judge_pairs(family, limits);
  const Judgement alone = judge(family[0], limits);
  EXPECT_EQ(judged[0].p, alone.p);
  EXPECT_DOUBLE_EQ(judged[0].p_adjusted, 9 * alone.p);
  EXPECT_GT(judged[0].mde, alone.mde);
}

TEST(Pairs, DetectableEffectIsThatOfTheTable) {
  // By hand for 12 rounds of sd .3 % a process, alpha .0025: t(.9975, 17) = 3.2224, t(.9, 17) =
  // 1.3334; the ratios' own spread is chosen as the prior's.
  Limits limits = Limits::cuda();
  limits.alpha = 0.0025;
  const Judgement j = judge(pairs(0, std::sqrt(18e-6 * 11 / 12), 12), limits);
  const double by_test = std::log1p(0.01) + (3.2224 + 1.3334) * std::sqrt(18e-6 / 12);
  const double by_estimate = std::log1p(0.015) + 1.3334 * std::sqrt(18e-6 / 12);
  EXPECT_LT(by_test, by_estimate);
  EXPECT_NEAR(std::log1p(j.mde), by_estimate, 1e-6);
  limits.fail_at = 0.01;
  EXPECT_NEAR(std::log1p(judge(pairs(0, std::sqrt(18e-6 * 11 / 12), 12), limits).mde), by_test,
              1e-6);
}

}  // namespace
}  // namespace moegate
