// SPDX-License-Identifier: Apache-2.0
// The decision rule: its arithmetic. What it buys: tests/simulation/processes_simulation.cc.
#include "harness/judge/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace moegate {
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

}  // namespace
}  // namespace moegate
