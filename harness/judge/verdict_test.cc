// SPDX-License-Identifier: Apache-2.0
// The decision rule: its arithmetic. What it buys: tests/simulation/processes_simulation.cc.
#include "harness/judge/verdict.h"

#include <gtest/gtest.h>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/pairs_fixture.h"

namespace moegate::test {
namespace {

Evidence around(double level, double sd, int n = 3) {
  return {std::log(level), sd, n};
}

Judgement judge(const Evidence& base, const Evidence& head, const Limits& limits = Limits::cuda()) {
  return judge_family(std::vector<Question>{{base, head}}, limits).at(0);
}

TEST(Verdict, SummarisesLevelsByTheirLogs) {
  const Evidence e = Evidence::of(std::vector<double>{1, std::exp(2.0)});
  EXPECT_DOUBLE_EQ(e.mean_log, 1);
  EXPECT_DOUBLE_EQ(e.sd_log, std::sqrt(2.0));
  EXPECT_EQ(e.n, 2);
  EXPECT_DOUBLE_EQ(e.level(), std::exp(1.0));
  EXPECT_EQ(Evidence::of({}).level(), 0);
}

TEST(Verdict, EqualSidesPass) {
  const Judgement j = judge(around(10, 0.003), around(10, 0.003));
  EXPECT_EQ(j.outcome, Outcome::pass) << j.why;
  EXPECT_EQ(j.effect, 0);
  EXPECT_FALSE(j.blind);
  EXPECT_LT(j.low, 0);
  EXPECT_GT(j.high, 0);
}

TEST(Verdict, ModeratedStatisticIsTheWrittenOne) {
  // s~^2 = (6 * 0.3^2 + 4 * 0.2^2) / 10 in %^2, df 10, t(.95, 10) = 1.8125; se = s~ sqrt(1/3 + 1/3
  // + .72), the last for the effect of the run.
  const Judgement j = judge(around(1, 0.002), around(std::exp(0.03), 0.002));
  const double se = std::sqrt((6 * 9e-6 + 4 * 4e-6) / 10) * std::sqrt(2.0 / 3 + 0.72);
  EXPECT_NEAR(std::log1p(j.high), 0.03 + 1.8124611 * se, 1e-8);
  EXPECT_NEAR(std::log1p(j.low), 0.03 - 1.8124611 * se, 1e-8);
  EXPECT_EQ(j.outcome, Outcome::regressed) << j.why;
}

TEST(Verdict, ACaseMuchNoisierThanThePriorIsJudgedByItsOwnSpread) {
  // sd 2 % against a prior of 0.3 %: df 4, t(.95, 4) = 2.1318, nothing borrowed.
  const Judgement j = judge(around(1, 0.02), around(1, 0.02));
  EXPECT_NEAR(std::log1p(j.high), 2.1318468 * 0.02 * std::sqrt(2.0 / 3 + 0.72), 1e-8);
  EXPECT_EQ(j.outcome, Outcome::inconclusive) << j.why;
  EXPECT_TRUE(j.blind);
}

TEST(Verdict, SmallButCertainLossesDoNotFail) {
  EXPECT_EQ(judge(around(1, 0.0005, 20), around(1.012, 0.0005, 20)).outcome, Outcome::pass);
}

TEST(Verdict, ImprovementIsTheMirror) {
  EXPECT_EQ(judge(around(1.05, 0.003), around(1, 0.003)).outcome, Outcome::improved);
  EXPECT_EQ(judge(around(1.012, 0.0005, 20), around(1, 0.0005, 20)).outcome, Outcome::pass);
}

TEST(Verdict, WhatIsNotCertainHasANumber) {
  EXPECT_EQ(uncertain(2.65), "about 3.6 times slower, not certain");
  EXPECT_EQ(uncertain(-0.75), "about 4.0 times faster, not certain");
  EXPECT_EQ(uncertain(0.124), "about 12 % slower, not certain");
  EXPECT_EQ(uncertain(-0.004), "about as fast, not certain");
  EXPECT_EQ(judge(around(1, 0.5), around(3, 0.5)).why.find("about 3.0 times slower, not certain: "),
            0u);
  EXPECT_EQ(judge(around(1, 0.02), around(1.001, 0.02)).why.find("neither slower nor"), 0u);
}

TEST(Verdict, OneProcessDecidesNothing) {
  for (const auto& [n1, n2] : {std::pair{1, 3}, {3, 1}, {1, 1}}) {
    const Judgement j = judge(around(1, 0.003, n1), around(3, 0.003, n2));
    EXPECT_EQ(j.outcome, Outcome::inconclusive);
    EXPECT_TRUE(j.blind);
    EXPECT_NE(j.why.find("--rounds"), std::string::npos) << j.why;
  }
}

TEST(Verdict, TheMarginIsAtLeastTwoTicks) {
  Question q{around(1, 0.001), around(1.03, 0.001), 0};
  EXPECT_EQ(judge_family(std::vector{q}, Limits::cuda())[0].outcome, Outcome::regressed);
  q.tick = 0.016;  // 32 ns of 2 us
  EXPECT_NE(judge_family(std::vector{q}, Limits::cuda())[0].outcome, Outcome::regressed);
}

TEST(Verdict, AnotherDeviceOfTheClassWidensTheInterval) {
  const auto on_two_devices = [](double head) {
    const Question q{around(1, 0.002), around(head, 0.002), 0, kBetweenDevicesSd};
    return judge_family(std::vector{q}, Limits::cuda())[0];
  };
  EXPECT_EQ(judge(around(1, 0.002), around(1.04, 0.002)).outcome, Outcome::regressed);
  EXPECT_EQ(on_two_devices(1.04).outcome, Outcome::inconclusive);
  EXPECT_NE(on_two_devices(1.04).why.find("two devices"), std::string::npos)
      << on_two_devices(1.04).why;
  EXPECT_EQ(on_two_devices(1.3).outcome, Outcome::regressed);
}

TEST(Verdict, ALargerFamilyDemandsMore) {
  std::vector<Question> family{{around(1, 0.003), around(1.022, 0.003)}};
  const Judgement alone = judge_family(family, Limits::cuda())[0];
  EXPECT_EQ(alone.outcome, Outcome::regressed) << alone.why;
  family.resize(3000, {around(1, 0.003), around(1, 0.003)});
  const Judgement among = judge_family(family, Limits::cuda())[0];
  EXPECT_EQ(among.p, alone.p);
  EXPECT_GT(among.p_adjusted, alone.p_adjusted);
  EXPECT_GT(among.mde, alone.mde);
  EXPECT_NE(among.outcome, Outcome::regressed);
}

TEST(Verdict, DetectableEffectIsThatOfTheTable) {
  // By hand for sd .3 %, 4 processes a side, alpha .0025; the effect of the run adds .72 to 1/4 +
  // 1/4. t(.9975, 12) = 3.4284, t(.9, 12) = 1.3562.
  Limits limits = Limits::cuda();
  limits.alpha = 0.0025;
  const Evidence e = around(1, 0.003, 4);
  const double se = 0.003 * std::sqrt(0.5 + 0.72);
  EXPECT_NEAR(std::log1p(judge(e, e, limits).mde), std::log1p(0.01) + (3.4284 + 1.3562) * se, 1e-6);
  limits.alpha = 0.5;  // now the estimate, which must reach 1.5 %, decides
  EXPECT_NEAR(std::log1p(judge(e, e, limits).mde), std::log1p(0.015) + 1.3562 * se, 1e-6);
}

TEST(Verdict, NothingToJudge) {
  EXPECT_TRUE(judge_family({}, Limits::cuda()).empty());
}

TEST(Verdict, Percent) {
  EXPECT_EQ(percent(0.0234), "+2.3 %");
  EXPECT_EQ(percent(-0.0001), "+0.0 %");
  EXPECT_EQ(percent(-0.5), "-50.0 %");
}

TEST(Quantiles, AreThoseOfTheDistributionHoweverOftenTheyAreAsked) {
  Quantiles quantiles;
  for (int again = 0; again < 2; ++again) {
    for (const double df : {1.0, 8.0, 14.0, 8.25}) {
      for (const double p : {0.05, 0.1, 0.9, 0.05 / 30000}) {
        const boost::math::students_t t(df);
        EXPECT_EQ(quantiles.student(df, p), boost::math::quantile(boost::math::complement(t, p)));
      }
    }
  }
}

TEST(Quantiles, ARatioIsBeyondWhereItsProbabilitySaysSo) {
  Quantiles quantiles;
  for (const double df : {2.0, 8.0}) {
    for (const double p : {0.05, 0.2}) {
      const boost::math::fisher_f f(df, 6);
      const double limit = boost::math::quantile(boost::math::complement(f, p));
      for (const double of_limit : {0.0, 0.5, 1 - 2e-6, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 2e-6, 50.0}) {
        const double ratio = limit * of_limit;
        const double exceeds = boost::math::cdf(boost::math::complement(f, ratio));
        EXPECT_EQ(quantiles.is_beyond(ratio, df, 6, p), exceeds < p) << df << " " << of_limit;
      }
    }
  }
}

// The rule over paired rounds: its arithmetic. tests/simulation/ simulates what it buys.

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
}  // namespace moegate::test
