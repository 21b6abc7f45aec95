// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/tails.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moegate::test {
namespace {

/// Rounds whose base is level, but for 0.1 % of noise, and whose head is slower by `head`, one
/// share per round.
PairedQuestion question(const std::vector<double>& head) {
  PairedQuestion q;
  for (size_t i = 0; i < head.size(); ++i) {
    const double noise = i % 2 == 0 ? 0.001 : -0.001;
    q.base_logs.push_back(noise);
    q.head_logs.push_back(std::log1p(head[i]) - noise);
    q.log_ratios.push_back(q.head_logs.back() - q.base_logs.back());
  }
  return q;
}

/// `slow` of `n` processes are twice as slow.
PairedQuestion bimodal(int slow, int n) {
  std::vector<double> head(static_cast<size_t>(n));
  for (int i = 0; i < slow; ++i) head[static_cast<size_t>(i)] = 1;
  return question(head);
}

/// Rounds whose levels are equal and whose plain means differ by `share`.
PairedQuestion rare(double share, size_t n) {
  PairedQuestion q = question(std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    q.mean_log_ratios.push_back(std::log1p(share) + (i % 2 == 0 ? 0.002 : -0.002));
  }
  return q;
}

Judgement judged(const PairedQuestion& q, double doubt = kLastDoubt) {
  const std::vector<PairedQuestion> family = {q};
  auto all = judge_pairs(family, Limits::cuda());
  judge_tails(family, Limits::cuda(), doubt, all);
  return all.at(0);
}

TEST(MoreOften, IsFishersTest) {
  EXPECT_NEAR(more_often(3, 10, 0, 10), 2.0 / 19, 1e-12);  // 120 / 1140
  EXPECT_NEAR(more_often(9, 9, 0, 9), 1.0 / 48620, 1e-12);
  EXPECT_EQ(more_often(0, 10, 3, 10), 1);
  EXPECT_EQ(more_often(3, 3, 0, 0), 1);
  EXPECT_GT(more_often(1, 10, 1, 10), 0.5);
  EXPECT_EQ(more_often(10, 10, 10, 10), 1);
}

TEST(Tails, ALossInFewLaunchesFails) {
  const Judgement j = judged(rare(0.05, 12));
  EXPECT_EQ(j.outcome, Outcome::regressed) << j.why;
  EXPECT_NE(j.why.find("the mean launch is slower: +5.0 %"), std::string::npos) << j.why;
  EXPECT_EQ(judged(rare(0, 12)).outcome, Outcome::pass);
  EXPECT_EQ(judged(rare(-0.05, 12)).outcome, Outcome::pass) << "the level is what gets faster";
}

TEST(Tails, ALossInFewProcessesFails) {
  std::vector<double> head(24);
  for (size_t i = 0; i < 9; ++i) head[i] = 0.035;  // +1.3 % on average
  const PairedQuestion q = question(head);
  EXPECT_NE(judge_pairs(std::vector{q}, Limits::cuda())[0].outcome, Outcome::regressed);
  const Judgement j = judged(q);
  EXPECT_EQ(j.outcome, Outcome::regressed) << j.why;
  EXPECT_NE(j.why.find("slower by more than 3 % in 9 of 24 processes, the base in 0"),
            std::string::npos)
      << j.why;
  EXPECT_EQ(judged(bimodal(10, 24)).outcome, Outcome::regressed);
  EXPECT_EQ(judged(bimodal(0, 24)).outcome, Outcome::pass);
}

TEST(Tails, NoPassWhileAShareOfSlowProcessesIsInDoubt) {
  std::vector<double> head(24);
  for (size_t i : {1, 7, 13, 19}) head[i] = 0.04;  // +0.7 % on average: passes by its level
  const PairedQuestion q = question(head);
  EXPECT_EQ(judge_pairs(std::vector{q}, Limits::cuda())[0].outcome, Outcome::pass);
  EXPECT_EQ(judged(q, kDoubtOnTheWay).outcome, Outcome::inconclusive);
  head[1] = 0;
  EXPECT_EQ(judged(question(head)).outcome, Outcome::pass) << "3 of 24 may be chance";
  EXPECT_EQ(judged(question(head), kDoubtOnTheWay).outcome, Outcome::inconclusive);
}

TEST(Tails, SlowProcessesOfBothSidesAreTheMachines) {
  PairedQuestion q = bimodal(6, 24);
  for (size_t i = 10; i < 16; ++i) {
    q.base_logs[i] += std::log(2);
    q.log_ratios[i] -= std::log(2);
  }
  EXPECT_NE(judged(q).outcome, Outcome::regressed) << judged(q).why;
}

TEST(Tails, HolmCountsTheWholeFamily) {
  std::vector<PairedQuestion> family(200, question(std::vector<double>(24)));
  family[0] = bimodal(5, 24);
  auto all = judge_pairs(family, Limits::cuda());
  judge_tails(family, Limits::cuda(), kLastDoubt, all);
  EXPECT_EQ(all[0].outcome, Outcome::inconclusive) << all[0].why;
  EXPECT_EQ(all[1].outcome, Outcome::pass);
}

}  // namespace
}  // namespace moegate::test
