// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/choice_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>

namespace moegate::test {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

/// Where a lookup of 1 to `most` tokens changes its entry.
Pairs switches_of(int most, const std::function<int(int)>& entry) {
  std::map<int, std::string> entries;
  for (int tokens = 1; tokens <= most; ++tokens) entries[tokens] = std::to_string(entry(tokens));
  return switches(entries);
}

TEST(Switches, OfTheLeastDifferenceFirstOfEquals) {  // as vLLM's files are read
  const auto nearest = [](int tokens) {
    int best = 64;
    for (const int entry : {64, 96, 128}) {
      if (std::abs(entry - tokens) < std::abs(best - tokens)) best = entry;
    }
    return best;
  };
  EXPECT_EQ(switches_of(128, nearest), (Pairs{{80, 81}, {112, 113}}));
}

TEST(Switches, OfPowersOfTwo) {  // as AITER pads
  const auto padded = [](int tokens) { return static_cast<int>(std::bit_ceil(unsigned(tokens))); };
  EXPECT_EQ(switches_of(9, padded), (Pairs{{1, 2}, {2, 3}, {4, 5}, {8, 9}}));
}

TEST(Switches, OfBuckets) {  // as FlashInfer has them: powers of two to 256, then steps of 256
  const auto bucket = [](int tokens) {
    if (tokens <= 256) return static_cast<int>(std::bit_ceil(unsigned(tokens)));
    return (tokens + 255) / 256 * 256;
  };
  const Pairs pairs = switches_of(800, bucket);
  EXPECT_EQ(pairs.size(), 11u);
  EXPECT_EQ(pairs[8], (std::pair{256, 257}));
  EXPECT_EQ(pairs.back(), (std::pair{768, 769}));
}

TEST(Switches, NeighboursAreThoseThatCanBe) {
  EXPECT_EQ(switches({{8, "a"}, {16, "a"}, {24, "b"}}), (Pairs{{16, 24}}));
  EXPECT_TRUE(switches({}).empty());
}

ChoiceOption option(const std::string& op, const std::string& group, const std::string& name) {
  return {group, name + group, {op, name + group}};
}

// Two operators of a layer with one block: up is fastest at 16, down at 64, their sum at 32.
const std::vector<ChoicePart> kLayerParts = {
    {option("up", "16", "u"), {option("up", "32", "u"), option("up", "64", "u")}},
    {option("down", "16", "d"), {option("down", "32", "d"), option("down", "64", "d")}}};

Microseconds layer_times(size_t rounds) {
  Microseconds times;
  for (const auto& [name, us] : std::map<std::string, double>{
           {"u16", 10}, {"u32", 12}, {"u64", 20}, {"d16", 20}, {"d32", 11}, {"d64", 9}}) {
    times[{name[0] == 'u' ? "up" : "down", name}] = std::vector<double>(rounds, us);
  }
  return times;
}

TEST(ChoiceTimes, SumsOverTheOperatorsOfALayer) {
  const ChoiceTimes times = choice_times(kLayerParts, layer_times(4));
  EXPECT_EQ(times.shipped.us, std::vector<double>(4, 30));
  ASSERT_EQ(times.others.size(), 2u);
  EXPECT_EQ(times.others[0].us, std::vector<double>(4, 23));
  EXPECT_EQ(times.others[1].us, std::vector<double>(4, 29));
}

TEST(ChoiceTimes, LeavesOutWhatLacksARoundOrAnOperator) {
  Microseconds times = layer_times(4);
  times[{"up", "u32"}].pop_back();
  EXPECT_EQ(choice_times(kLayerParts, times).others.size(), 1u);
  times.erase({"down", "d64"});
  EXPECT_TRUE(choice_times(kLayerParts, times).others.empty());
}

TEST(Finalists, WhatShipsAndWhatIsNearTheBestSum) {
  const std::set<RowName> left = finalists(kLayerParts, layer_times(1));
  EXPECT_EQ(left,
            (std::set<RowName>{{"down", "d16"}, {"down", "d32"}, {"up", "u16"}, {"up", "u32"}}));
}

TEST(Finalists, WhatComesNextWhereNothingComesNear) {
  Microseconds times = layer_times(1);
  times[{"up", "u16"}] = {1};
  times[{"down", "d16"}] = {1};
  const std::set<RowName> shipped = {{"down", "d16"}, {"up", "u16"}};
  std::set<RowName> left = shipped;
  left.insert({{"down", "d32"}, {"up", "u32"}});
  EXPECT_EQ(finalists(kLayerParts, times), left) << "another block, for both operators";

  std::vector<ChoicePart> parts = kLayerParts;
  parts[1].others.push_back(option("down", "16", "slow"));
  times[{"down", "slow16"}] = {5};
  left = shipped;
  left.insert({"down", "slow16"});
  EXPECT_EQ(finalists(parts, times), left) << "the same block, for one operator";

  EXPECT_EQ(finalists(kLayerParts, {{{"up", "u16"}, {1}}, {{"down", "d16"}, {1}}}), shipped);
}

// Up's 16 and down's 64 are the fastest where they are fast; 32 is never far from them.
TEST(BestOfMean, IsTheLeastSumOverRoutings) {
  std::vector<Cell> cells(2);
  Microseconds times;
  for (const std::string routing : {"even", "skewed"}) {
    std::vector<ChoicePart> parts = kLayerParts;
    for (ChoicePart& part : parts) {
      const auto rename = [&](ChoiceOption& one) { one.row.first += routing; };
      rename(part.shipped);
      std::ranges::for_each(part.others, rename);
    }
    cells[routing == "even" ? 0 : 1].parts = parts;
    for (const auto& [row, us] : layer_times(1)) times[{row.first + routing, row.second}] = us;
  }
  times[{"upskewed", "u32"}] = {40};
  times[{"downskewed", "d32"}] = {40};
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& rows : best_of_mean({&cells[0], &cells[1]}, times)) {
      for (const ChoiceOption* row : rows) all.push_back(row->row.first + " " + row->name);
    }
    return all;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"upeven u64", "downeven d64", "upskewed u64",
                                               "downskewed d64"}));
  times.erase({"downskewed", "d64"});
  EXPECT_EQ(names(), (std::vector<std::string>{"upeven u16", "downeven d16", "upskewed u16",
                                               "downskewed d16"}))
      << "what has no time everywhere is not one for all";
  times.erase({"downskewed", "d32"});
  times.erase({"downeven", "d16"});
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace moegate::test
