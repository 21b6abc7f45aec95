// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tuning.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

const TileTask kUp = {"shape", 8, "moe_gate_up"}, kDown = {"shape", 8, "moe_down"};

TileConfig config(const std::string& kernel, int block) {
  return {kernel, block, {}};
}

TEST(CandidateTimes, MeanOverCasesOfTheMedianOverProcesses) {
  const auto row = [](const char* base, double us) {
    return TileRow{kUp, base, base, config("a", 16), true, us};
  };
  const auto times = candidate_times(
      {row("even", 10), row("even", 11), row("even", 90), row("skewed", 20), row("skewed", 22)});
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].task, kUp);
  EXPECT_EQ(times[0].config, config("a", 16));
  EXPECT_DOUBLE_EQ(times[0].us, (11 + 21) / 2.0);
}

TEST(CandidateTimes, LeavesOutWhatFailedOnceOrLacksACase) {
  const auto times = candidate_times({{kUp, "even", "", config("whole", 16), true, 30},
                                      {kUp, "skewed", "", config("whole", 16), true, 40},
                                      {kUp, "even", "", config("wrong", 16), true, 1},
                                      {kUp, "skewed", "", config("wrong", 16), true, 1},
                                      {kUp, "skewed", "", config("wrong", 16), false, 0},
                                      {kUp, "even", "", config("partial", 16), true, 2}});
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].config.kernel, "whole");
}

// Alone gate-up would take block 16 and down block 64; together 32 is better than either.
const std::vector<TileTime> kLayer = {{kUp, config("a", 16), 10},   {kUp, config("b", 16), 14},
                                      {kUp, config("a", 32), 12},   {kUp, config("a", 64), 20},
                                      {kDown, config("a", 16), 20}, {kDown, config("a", 32), 12},
                                      {kDown, config("b", 32), 11}, {kDown, config("a", 64), 9}};

TEST(PickTiles, OneBlockForTheOperatorsOfALayer) {
  const auto picks = pick_tiles(kLayer);
  ASSERT_EQ(picks.size(), 2u);
  EXPECT_EQ(picks[0].best.task, kDown);
  EXPECT_EQ(picks[0].best.config, config("b", 32));
  EXPECT_EQ(picks[0].second->config, config("a", 64));  // faster, at the other operator's expense
  EXPECT_EQ(picks[1].best.config, config("a", 32));
  EXPECT_EQ(picks[1].second->config, config("a", 16));
}

TEST(PickTiles, AnOperatorAloneTakesItsFastest) {
  const auto picks = pick_tiles({kLayer.begin(), kLayer.begin() + 4});
  ASSERT_EQ(picks.size(), 1u);
  EXPECT_EQ(picks[0].best.config, config("a", 16));
  EXPECT_EQ(picks[0].second->config, config("a", 32));
}

TEST(PickTiles, TokenCountsAndShapesAreSeparate) {
  TileTask more = kUp, other = kUp;
  more.tokens = 16;
  other.shape = "other";
  const auto picks = pick_tiles({{kUp, config("a", 16), 1},
                                 {more, config("a", 16), 9},
                                 {more, config("a", 64), 8},
                                 {other, config("a", 32), 3}});
  ASSERT_EQ(picks.size(), 3u);
  EXPECT_EQ(picks[0].best.config.block, 32);  // "other"
  EXPECT_EQ(picks[1].best.config.block, 16);
  EXPECT_EQ(picks[2].best.config.block, 64);
  EXPECT_FALSE(picks[1].second.has_value());
}

TEST(PickTiles, NoCommonBlockNoPick) {
  EXPECT_TRUE(pick_tiles({{kUp, config("a", 16), 1}, {kDown, config("a", 64), 1}}).empty());
  EXPECT_TRUE(pick_tiles({}).empty());
}

TEST(PickTiles, OfEqualSumsTheSmallestBlock) {
  const auto picks = pick_tiles({{kUp, config("a", 64), 5}, {kUp, config("a", 16), 5}});
  EXPECT_EQ(picks[0].best.config.block, 16);
}

TEST(Contenders, WhatIsNearTheBestOfABlockThatIsNearTheBest) {
  const auto texts = [](double slack) {
    std::vector<std::string> texts;
    for (const TileTime& time : contenders(kLayer, slack)) {
      texts.push_back(time.task.op + " " + time.config.text());
    }
    return texts;
  };
  // Sums: 30 at 16, 23 at 32, 29 at 64.
  EXPECT_EQ(texts(0.05),
            (std::vector<std::string>{"moe_gate_up a/block=32", "moe_down b/block=32"}));
  EXPECT_EQ(texts(0.1), (std::vector<std::string>{"moe_gate_up a/block=32", "moe_down a/block=32",
                                                  "moe_down b/block=32"}));
  EXPECT_EQ(texts(0.5).size(), kLayer.size());
}

/// Rows of gate-up and down at two blocks, under two routings.
std::vector<TileRow> two_routings(double skewed_down_at_64) {
  std::vector<TileRow> rows;
  const auto add = [&](const TileTask& task, const char* routing, int block, double us) {
    rows.push_back({task, routing, routing, config("a", block), true, us});
  };
  for (const char* routing : {"uniform", "zipf:1.2"}) {
    add(kUp, routing, 16, 10);
    add(kUp, routing, 64, 11);
    add(kDown, routing, 16, 10);
  }
  add(kDown, "uniform", 64, 20);
  add(kDown, "zipf:1.2", 64, skewed_down_at_64);
  return rows;
}

TEST(RoutedPicks, ARoutingGetsItsOwnWhereThatPays) {
  const auto rows = two_routings(8);  // 19 against 20: 5 %
  const auto general = pick_tiles(candidate_times(rows));
  ASSERT_EQ(general.size(), 2u);
  EXPECT_EQ(general[0].best.config.block, 16);
  const auto routed = routed_picks(rows, general);
  ASSERT_EQ(routed.size(), 2u);  // gate-up shares the block, though it alone loses by it
  for (const TilePick& pick : routed) {
    EXPECT_EQ(pick.best.task.file(), "shape,routing=zipf:1.2");
    EXPECT_EQ(pick.best.config.block, 64);
  }
}

TEST(RoutedPicks, NoneWhereItDoesNotPayOrThereIsOneRouting) {
  const auto rows = two_routings(8.6);  // 19.6 against 20: 2 %
  EXPECT_TRUE(routed_picks(rows, pick_tiles(candidate_times(rows))).empty());
  EXPECT_TRUE(by_routing({{kUp, "a", "uniform", config("a", 16), true, 1},
                          {kUp, "b", "uniform", config("a", 64), true, 2}})
                  .empty());
}

TEST(TuneTable, NamesBestAndSecondBest) {
  const std::string table = render(tune_table(pick_tiles(kLayer)), Format::csv);
  EXPECT_NE(table.find("8,moe_down,b/block=32,11.00,a/block=64,9.00"), std::string::npos) << table;
}

}  // namespace
}  // namespace moegate::test
