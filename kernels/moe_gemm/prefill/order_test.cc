// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/prefill/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace moegate::moe_gemm::prefill {
namespace {

/// Every half of a tile once; the last of an odd number of blocks may have a neighbour that is not
/// there.
template <int kCluster, bool kRowsFirst>
void expect_every_half_once(int blocks, int columns, int clusters) {
  const TileOrder<kCluster, kRowsFirst> order(blocks, columns, clusters);
  std::set<std::pair<int, int>> halves;
  for (int index = 0; index < order.all(); ++index) {
    for (int rank = 0; rank < kCluster; ++rank) {
      const Place place = order.get(index, rank);
      EXPECT_EQ(place.block() % kCluster, rank);
      EXPECT_EQ(place.column, order.get(index, 0).column);
      for (int half = 0; half < place.halves; ++half)
        EXPECT_TRUE(halves.insert({place.row + half * kHalfTokens, place.column}).second);
    }
  }
  std::erase_if(halves, [&](const auto& half) { return half.first >= blocks * kTokens; });
  EXPECT_EQ(halves.size(), static_cast<size_t>(2 * blocks * columns));
  EXPECT_EQ(halves.rbegin()->first, blocks * kTokens - kHalfTokens);
  EXPECT_EQ(halves.rbegin()->second, (columns - 1) * kColumns);
}

TEST(PrefillOrder, HasEveryHalfOfATileOnce) {
  for (const int blocks : {1, 2, 5, 8, kStrip, kStrip + 1, 3 * kStrip - 3}) {
    for (const int columns : {1, 3, kFewColumns + 1}) {
      for (const int clusters : {1, 2, 7, 66, 1000}) {
        expect_every_half_once<1, false>(blocks, columns, clusters);
        expect_every_half_once<2, false>(blocks, columns, clusters);
        expect_every_half_once<1, true>(blocks, columns, clusters);
        expect_every_half_once<2, true>(blocks, columns, clusters);
      }
    }
  }
}

// Fifteen tiles of six clusters: three are left, for whom all six are there.
TEST(PrefillOrder, DividesTheTilesOfALastRoundForFew) {
  const TileOrder<1, false> order(5, 3, 6);
  EXPECT_EQ(order.whole, 12);
  EXPECT_EQ(order.all(), 18);
  EXPECT_EQ(order.get(11, 0).halves, 2);
  for (const int index : {12, 13}) {
    EXPECT_EQ(order.get(index, 0).block(), 4);
    EXPECT_EQ(order.get(index, 0).column, 0);
    EXPECT_EQ(order.get(index, 0).halves, 1);
  }
  EXPECT_EQ(order.get(13, 0).row, 4 * kTokens + kHalfTokens);
  EXPECT_EQ(order.get(14, 0).column, kColumns);
  const TileOrder<1, false> of_five(5, 3, 5), of_four(5, 3, 4);  // none are left; three of four
  EXPECT_EQ(of_five.all(), 15);
  EXPECT_EQ(of_four.all(), 15);
}

TEST(PrefillOrder, GoesAcrossTheColumnsOrDownTheRows) {
  const TileOrder<1, false> across(4, 3, 4);
  const TileOrder<1, true> down(4, 3, 4);
  EXPECT_EQ(across.get(1, 0).block(), 0);
  EXPECT_EQ(across.get(1, 0).column, kColumns);
  EXPECT_EQ(down.get(1, 0).block(), 1);
  EXPECT_EQ(down.get(1, 0).column, 0);
  EXPECT_EQ(down.get(4, 0).column, kColumns);
}

// Weights of many columns: whole strips, then what is left.
TEST(PrefillOrder, GoesDownStripsOfRows) {
  constexpr int kWide = kFewColumns + 1;
  const TileOrder<2, false> order(kStrip + 3, kWide, 1);
  EXPECT_EQ(order.get(1, 1).block(), 3);
  EXPECT_EQ(order.get(1, 1).column, 0);
  EXPECT_EQ(order.get(kStrip / 2, 0).block(), 0);
  EXPECT_EQ(order.get(kStrip / 2, 0).column, kColumns);
  constexpr int kRest = kStrip / 2 * kWide;
  EXPECT_EQ(order.get(kRest + 1, 0).block(), kStrip + 2);
  EXPECT_EQ(order.get(kRest + 2, 0).block(), kStrip);
  EXPECT_EQ(order.get(kRest + 2, 0).column, kColumns);
}

// I = 384: three tiles, each a group of 128 gates and the ups that go with them.
TEST(PrefillOrder, ATileHasGatesAndTheirUps) {
  constexpr int kInter = 384;
  std::vector<int> columns;
  for (int column = 0; column < 2 * kInter; column += kColumns) {
    const auto of_tile = ProductColumns::gate_with_up({0, column, 2}, 2 * kInter);
    EXPECT_EQ(of_tile.second - of_tile.first, kInter);
    EXPECT_EQ(of_tile.first % kProductColumns, 0);
    columns.insert(columns.end(), {of_tile.first, of_tile.second});
  }
  std::ranges::sort(columns);
  EXPECT_EQ(columns, (std::vector<int>{0, 128, 256, 384, 512, 640}));
}

}  // namespace
}  // namespace moegate::moe_gemm::prefill
