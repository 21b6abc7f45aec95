// SPDX-License-Identifier: Apache-2.0
// The decision rule: its arithmetic, and seeded simulations of unchanged and of slower trees.
#include "harness/judge/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

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

// ---- simulations. Seeded with std::mt19937_64 and own transforms, so every platform draws the
// same.

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform()); }
  double student3() {  // heavy tails: no fourth moment
    double chi2 = 0;
    for (int i = 0; i < 3; ++i) chi2 += std::pow(normal(), 2);
    return normal() / std::sqrt(chi2 / 3);
  }

 private:
  std::mt19937_64 random_;
};

struct Noise {
  double sd;           // typical, between processes
  double case_spread;  // log sd of a case's own sd: some cases are much noisier than others
  double session;      // case x session effect, as a share of the case's sd
  double outliers;     // share of processes disturbed by +20 % to +150 %
  bool heavy;          // Student t with 3 degrees of freedom instead of normal
};

std::vector<double> side(World& world, const Noise& noise, double sd, double shift, int processes) {
  const double session = noise.session * sd * world.normal();
  std::vector<double> levels;
  for (int i = 0; i < processes; ++i) {
    const double z = noise.heavy ? world.student3() / std::sqrt(3.0) : world.normal();
    double log_level = shift + session + sd * z;
    if (world.uniform() < noise.outliers) log_level += std::log(1.2 + 1.3 * world.uniform());
    levels.push_back(std::exp(log_level));
  }
  return levels;
}

struct Tally {
  int failed_suites = 0, false_fails = 0, caught = 0, slowed = 0;
};

Tally simulate(const Noise& noise, const Limits& limits, int suites, int cases, int slowed,
               double slow_down) {
  World world(20261121);
  Tally tally;
  for (int s = 0; s < suites; ++s) {
    std::vector<Question> family;
    for (int c = 0; c < cases; ++c) {
      const double sd = noise.sd * std::exp(noise.case_spread * world.normal());
      const double shift = c < slowed ? std::log(slow_down) : 0;
      const auto base = side(world, noise, sd, 0, 3);
      const auto head = side(world, noise, sd, shift, 3);
      family.push_back({Evidence::of(base), Evidence::of(head)});
    }
    const auto judged = judge_family(family, limits);
    int fails = 0;
    for (int c = 0; c < cases; ++c) {
      const bool regressed = judged[static_cast<size_t>(c)].outcome == Outcome::regressed;
      if (c < slowed) {
        tally.caught += regressed;
        ++tally.slowed;
      } else {
        fails += regressed;
      }
    }
    tally.false_fails += fails;
    tally.failed_suites += fails > 0;
  }
  return tally;
}

constexpr int kSuites = 200, kCases = 60;

TEST(Simulation, AnUnchangedTreeDoesNotFailOnANoisyHost) {
  for (const double sd : {0.01, 0.04, 0.08, 0.15, 0.4}) {
    const Noise noise{sd, 0.7, 0.3, 0.03, true};
    const Tally t = simulate(noise, Limits::host(), kSuites, kCases, 0, 1);
    EXPECT_LE(t.failed_suites, kSuites / 20) << "sd " << sd << ", " << t.false_fails << " fails";
  }
}

TEST(Simulation, AnUnchangedTreeDoesNotFailOnAGpu) {
  for (const double sd : {0.001, 0.003, 0.006, 0.01, 0.03}) {
    const Noise noise{sd, 0.5, 0.3, 0.01, true};
    const Tally t = simulate(noise, Limits::cuda(), kSuites, kCases, 0, 1);
    EXPECT_LE(t.failed_suites, kSuites / 20) << "sd " << sd << ", " << t.false_fails << " fails";
  }
}

TEST(Simulation, FivePercentIsCaughtOnAGpu) {
  const Noise noise{0.003, 0.3, 0.3, 0, false};
  const Tally t = simulate(noise, Limits::cuda(), kSuites, kCases, 3, 1.05);
  EXPECT_GE(t.caught, t.slowed * 97 / 100) << t.caught << " of " << t.slowed;
  EXPECT_LE(t.failed_suites, kSuites / 20);
}

TEST(Simulation, FivePercentIsCaughtInALargeNight) {
  const Noise noise{0.003, 0.3, 0.3, 0, false};
  const Tally t = simulate(noise, Limits::cuda(), 5, 3000, 100, 1.05);
  EXPECT_GE(t.caught, t.slowed * 9 / 10) << t.caught << " of " << t.slowed;
}

TEST(Simulation, TwiceAsSlowIsCaughtOnAHost) {
  const Noise noise{0.04, 0.3, 0.3, 0, true};
  const Tally t = simulate(noise, Limits::host(), kSuites, kCases, 3, 2);
  EXPECT_GE(t.caught, t.slowed * 95 / 100) << t.caught << " of " << t.slowed;
}

}  // namespace
}  // namespace moegate
