// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/regret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace moegate::test {
namespace {

/// Times around `us` that spread by `spread`.
std::vector<double> drawn(std::mt19937& random, double us, int rounds, double spread = 0.01) {
  std::normal_distribution<double> noise(0, spread);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(us * std::exp(noise(random)));
  return times;
}

ChoiceTimes cell(std::mt19937& random, double shipped, const std::vector<double>& others,
                 int rounds = 6) {
  ChoiceTimes times{{"shipped", drawn(random, shipped, rounds)}, {}};
  for (const double us : others) {
    times.others.push_back({std::to_string(us), drawn(random, us, rounds)});
  }
  return times;
}

TEST(Regret, AWrongChoiceIsFoundWithItsPrice) {
  std::mt19937 random(1);
  const auto regrets = judge_regrets(
      std::vector{cell(random, 120, {100, 140}), cell(random, 100, {120, 140})}, 0.05);
  EXPECT_EQ(regrets[0].finding, RegretFinding::regret);
  EXPECT_NEAR(regrets[0].share, 0.2, 0.03);
  EXPECT_LT(regrets[0].low, 0.2);
  EXPECT_GT(regrets[0].high, 0.2);
  EXPECT_EQ(regrets[0].best, std::to_string(100.0));
  EXPECT_NEAR(regrets[0].best_us, 100, 2);
  EXPECT_NEAR(regrets[0].shipped_us, 120, 2);
  EXPECT_LE(regrets[0].p, regrets[0].p_adjusted);
  EXPECT_EQ(regrets[1].finding, RegretFinding::best);
  EXPECT_EQ(regrets[1].best, "shipped");
  EXPECT_EQ(regrets[1].share, 0);
}

TEST(Regret, WithinTheLimitIsNoRegret) {
  std::mt19937 random(2);
  const std::vector cells = {cell(random, 104, {100}, 12)};
  EXPECT_EQ(judge_regrets(cells, 0.05)[0].finding, RegretFinding::within);
  EXPECT_EQ(judge_regrets(cells, 0.01)[0].finding, RegretFinding::regret);
  const std::vector less = {cell(random, 100.5, {100}, 400)};
  EXPECT_GT(judge_regrets(less, 0)[0].low, 0);
  EXPECT_EQ(judge_regrets(less, 0.05)[0].finding, RegretFinding::best) << "not worth a change";
}

TEST(Regret, NothingElseIsBlind) {
  std::mt19937 random(3);
  EXPECT_EQ(judge_regrets(std::vector{cell(random, 100, {})}, 0.05)[0].finding,
            RegretFinding::blind);
  EXPECT_TRUE(judge_regrets({}, 0.05).empty());
}

// The least of 20 equal times is 2 % below their mean here: who named and measured the best by the
// same rounds would find a regret everywhere.
TEST(Regret, TwentyEqualCandidatesSeldomGiveAFalseOne) {
  std::mt19937 random(4);
  constexpr int kSuites = 400, kCells = 6;
  int false_suites = 0;
  double sum = 0;
  for (int suite = 0; suite < kSuites; ++suite) {
    std::vector<ChoiceTimes> cells;
    for (int i = 0; i < kCells; ++i) cells.push_back(cell(random, 100, std::vector(19, 100.0)));
    bool any = false;
    for (const Regret& regret : judge_regrets(cells, 0)) {
      any = any || regret.finding == RegretFinding::regret;
      sum += regret.share;
    }
    false_suites += any ? 1 : 0;
  }
  EXPECT_LE(false_suites, 0.05 * kSuites);
  EXPECT_NEAR(sum / (kSuites * kCells), 0, 0.001);
}

TEST(Regret, RefusesWhatHasNoTwoHalves) {
  const ChoiceTimes few{{"a", {1, 1, 1}}, {}}, unequal{{"a", {1, 1, 1, 1}}, {{"b", {1, 1, 1}}}},
      zero{{"a", {1, 1, 1, 0}}, {}};
  for (const ChoiceTimes& bad : {few, unequal, zero}) {
    EXPECT_THROW(judge_regrets(std::vector{bad}, 0.05), std::invalid_argument);
  }
}

TEST(Cliffs, FewerTokensThatTakeLongerThanMore) {
  std::mt19937 random(5);
  const auto step = [&](double fewer, double more) {
    return Step{drawn(random, fewer, 6), drawn(random, more, 6)};
  };
  const auto cliffs =
      judge_cliffs(std::vector{step(130, 100), step(100, 130), step(103, 100)}, 0.05);
  EXPECT_TRUE(cliffs[0].over);
  EXPECT_NEAR(cliffs[0].share, 0.3, 0.03);
  EXPECT_FALSE(cliffs[1].over);
  EXPECT_FALSE(cliffs[2].over);
}

}  // namespace
}  // namespace moegate::test
