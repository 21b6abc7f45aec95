// SPDX-License-Identifier: Apache-2.0
// Which cases go on, and which share of alpha each look spends. tests/simulation/ simulates the
// whole rule.
#include "harness/judge/replay_rule.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "harness/judge/pairs_fixture.h"

namespace moegate::test {
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

/// `n` rows, measured in 12 rounds without noise.
std::vector<RoundsOfRow> calm(size_t n) {
  std::vector<RoundsOfRow> rows(n);
  for (size_t i = 0; i < n; ++i) {
    for (int round = 0; round < 12; ++round) {
      rows[i].base[round] = rows[i].head[round] = static_cast<double>(10 + i);
    }
  }
  return rows;
}

double far() {
  return far_off(Limits::cuda());
}

TEST(Rounds, EachSideGoesFirstOnceInTwoRoundsAndTheOrderIsNotFixed) {
  std::set<std::vector<bool>> orders;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::vector<bool> order;
    for (int round = 0; round < 12; round += 2) {
      EXPECT_NE(base_leads(seed, round), base_leads(seed, round + 1)) << seed << " " << round;
      order.push_back(base_leads(seed, round));
    }
    EXPECT_EQ(base_leads(seed, 0), base_leads(seed, 0)) << "the same seed, the same order";
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(Rounds, AProcessIsWildWhereNearlyAllRowsAreOffTogether) {
  auto rows = calm(20);
  for (auto& row : rows) row.head[3] *= 1.5;
  rows[0].head[3] /= 1.5;  // one was not
  const auto wild = wild_processes(rows, 0, 12, far());
  ASSERT_EQ(wild.size(), 1u);
  EXPECT_EQ(wild[0].round, 3);
  EXPECT_TRUE(wild[0].head);
  EXPECT_EQ(wild[0].rows, 19u);
  EXPECT_NEAR(wild[0].off, 0.5, 1e-9);
  EXPECT_EQ(wild[0].text(), "the head's process of round 3: 19 of 20 rows off, by +50.0 %");
  EXPECT_TRUE(wild_processes(rows, 4, 12, far()).empty()) << "of the rounds that are asked about";
}

TEST(Rounds, OfSeveralDevicesEachHasAProcessOfItsOwn) {
  auto rows = calm(20);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].lane = i % 2;
    if (rows[i].lane == 1) rows[i].head[3] *= 1.5;
  }
  const auto wild = wild_processes(rows, 0, 12, far());
  ASSERT_EQ(wild.size(), 1u) << "half of the round, and all of its process";
  EXPECT_EQ(wild[0].all, 10u);
  EXPECT_EQ(wild[0].round, 3);
}

TEST(Rounds, WhatOnlySomeRowsDoIsTheirOwn) {
  auto rows = calm(20);
  for (size_t i = 0; i < 15; ++i) rows[i].head[3] *= 1.5;
  EXPECT_TRUE(wild_processes(rows, 0, 12, far()).empty()) << "three quarters";
  rows = calm(20);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].head[3] *= i % 2 == 0 ? 1.5 : 0.5;
  EXPECT_TRUE(wild_processes(rows, 0, 12, far()).empty()) << "both ways";
  rows = calm(20);
  for (auto& row : rows) row.head[3] *= 1.05;
  EXPECT_TRUE(wild_processes(rows, 0, 12, far()).empty()) << "not far";
  rows = calm(5);
  for (auto& row : rows) row.head[3] *= 1.5;
  EXPECT_TRUE(wild_processes(rows, 0, 12, far()).empty()) << "few rows";
  rows = calm(20);
  for (auto& row : rows) {
    for (const auto& [round, level] : ByRound(row.head)) row.head[round] = level * 1.5;
  }
  EXPECT_TRUE(wild_processes(rows, 0, 12, far()).empty()) << "in every round: a regression";
}

TEST(Rounds, AScreensFewRoundsExcuseNone) {
  auto rows = calm(20);
  for (auto& row : rows) row.base[1] *= 1.5;
  EXPECT_TRUE(wild_processes(rows, 0, 4, far()).empty());
  EXPECT_TRUE(wild_processes(rows, 0, 7, far()).empty());
  EXPECT_EQ(wild_processes(rows, 0, 8, far()).size(), 1u);
}

WildProcess at(int round, bool head, double off) {
  return {round, head, off, 20, 20};
}

TEST(Rounds, TheWildestIsMeasuredAgain) {
  const std::vector<WildProcess> wild = {at(1, false, 0.2), at(5, true, 0.9), at(7, false, 0.3)};
  EXPECT_EQ(next_to_repeat(wild, {}, 12)->round, 5);
  EXPECT_FALSE(next_to_repeat({}, wild, 12));
}

TEST(Rounds, MoreThanAThirdOfTheRoundsIsALoadAndNotAnAccident) {
  const std::vector<WildProcess> wild = {at(1, false, 0.2), at(5, true, 0.9), at(7, false, 0.3)};
  EXPECT_FALSE(next_to_repeat(wild, {}, 8));
  EXPECT_FALSE(next_to_repeat({wild.data(), 2}, {wild.data() + 2, 1}, 8));
  EXPECT_TRUE(next_to_repeat({wild.data(), 2}, {wild.data() + 2, 1}, 9));
}

TEST(Rounds, AMachineThatIsFasterNowAndThenIsLoadedOtherwise) {
  const std::vector<WildProcess> wild = {at(1, false, 0.2), at(5, true, -0.2)};
  EXPECT_FALSE(next_to_repeat(wild, {}, 12));
}

TEST(Rounds, ASideThatIsWildAloneIsNotExcused) {
  const std::vector<WildProcess> wild = {at(6, true, 0.5)};
  const std::vector<WildProcess> heads = {at(1, true, 0.5)};
  EXPECT_FALSE(next_to_repeat(wild, heads, 24));
  const std::vector<WildProcess> both = {at(1, true, 0.5), at(4, false, 0.5)};
  EXPECT_TRUE(next_to_repeat(wild, both, 24));
}

/// 20 rows; the base's process of one round is disturbed.
struct Machine {
  int disturbed;
  std::vector<RoundsOfRow> rows{20};
  std::map<int, bool> orders;

  RoundCalls calls(int interrupted_in = -1) {
    const auto measure = [this, interrupted_in](int round, bool base_first) {
      orders[round] = base_first;
      if (round == interrupted_in) return false;
      for (RoundsOfRow& row : rows) {
        row.base[round] = round == disturbed ? 2 : 1;
        row.head[round] = 1;
      }
      return true;
    };
    const auto drop = [this](int round) {
      for (RoundsOfRow& row : rows) {
        row.base.erase(round);
        row.head.erase(round);
      }
    };
    return {measure, [this] { return rows; }, drop};
  }
};

TEST(Rounds, AWildRoundIsReplacedInTheSameOrder) {
  Machine machine{6};
  std::vector<WildProcess> repeated;
  EXPECT_EQ(measure_rounds(machine.calls(), 4, 12, 7, far(), repeated), 17);
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].round, 6);
  EXPECT_FALSE(repeated[0].head);
  EXPECT_EQ(machine.orders.at(16), machine.orders.at(6));
  EXPECT_EQ(machine.rows[0].base.size(), 12u);
  EXPECT_EQ(machine.rows[0].base.count(6), 0u);
}

TEST(Rounds, NoRoundFollowsAnInterruption) {
  Machine machine{6};
  std::vector<WildProcess> repeated;
  EXPECT_EQ(measure_rounds(machine.calls(8), 4, 12, 7, far(), repeated), 8);
  EXPECT_TRUE(repeated.empty());
  EXPECT_EQ(machine.orders.size(), 5u);
}

}  // namespace
}  // namespace moegate::test
