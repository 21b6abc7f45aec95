// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/moe_gemm/moe_gemm_testing.h"
#include "kernels/moe_gemm/swap_ab/swap_ab.h"

namespace moegate::moe_gemm::swap_ab {
namespace {

constexpr int kProcessors = 132;

/// A GPU whose SMs every cluster can use.
int all_used(const SwapAbTile& tile) {
  return 2 * kProcessors / tile.splits;
}

/// DeepSeek-R1's gate-up on one of eight ranks.
MoeGemmShape deepseek(const std::string& tokens, const Params& more = {}) {
  Params params = {
      {"tokens", tokens}, {"experts", "256"}, {"topk", "8"}, {"hidden", "7168"}, {"inter", "256"}};
  for (const auto& [name, value] : more) params[name] = value;
  return MoeGateUp::shape_of(moe_gemm_case<MoeGateUp>(params));
}

SwapAbTile chosen(const MoeGemmShape& shape, const ResidentClusters& resident = all_used) {
  return choose_swap_ab_tile(shape, swap_ab_tiles(shape), kProcessors, resident);
}

TEST(SwapAbTiles, FitTheShape) {
  const auto most_splits = [](const MoeGemmShape& shape) {
    const auto tiles = swap_ab_tiles(shape);
    return std::ranges::max(tiles, {}, &SwapAbTile::splits).splits;
  };
  EXPECT_EQ(most_splits(deepseek("1")), 8);
  EXPECT_EQ(most_splits(deepseek("1", {{"hidden", "896"}})), 4);  // seven groups of K
  EXPECT_EQ(most_splits(deepseek("1", {{"hidden", "128"}})), 1);
  EXPECT_EQ(most_splits(deepseek("1", {{"hidden", "448"}, {"dtype", "bf16"}})), 4);  // of 64
  for (const SwapAbTile& tile : swap_ab_tiles(deepseek("1"))) {
    EXPECT_GE(tile.columns / tile.splits, 16) << text(tile);
  }
  EXPECT_EQ(swap_ab_tiles(deepseek("1", {{"block", "64"}})),
            (std::vector<SwapAbTile>{{.columns = 128, .splits = 1}}));
  EXPECT_EQ(swap_ab_tiles(deepseek("1", {{"block", "128"}})),
            (std::vector<SwapAbTile>{{.columns = 128, .splits = 1}}));
}

TEST(SwapAbChoice, ExpectsTheBlocksOfUniformRouting) {
  EXPECT_NEAR(expected_row_blocks(deepseek("1")), 7.9, 0.1);  // of 8 rows, nearly all apart
  EXPECT_NEAR(expected_row_blocks(deepseek("8")), 56.7, 0.1);
  EXPECT_NEAR(expected_row_blocks(deepseek("64")), 221.5, 0.1);  // two rows each: one block
  // 64 rows each: four blocks, and half a one
  EXPECT_NEAR(expected_row_blocks(deepseek("2048", {{"block", "16"}})), 4.5 * 256, 1);
  const MoeGemmShape one = deepseek("4", {{"experts", "1"}, {"topk", "1"}});
  EXPECT_EQ(expected_row_blocks(one), 1);
}

TEST(SwapAbChoice, SplitsWhereTilesLeaveSmsIdle) {
  const SwapAbTile few = chosen(deepseek("1"));  // 32 tiles
  EXPECT_GE(few.splits * 32 * (128 / few.columns), kProcessors * 9 / 10) << text(few);
  EXPECT_EQ(chosen(deepseek("4")).splits, 1);  // 124 tiles for 132 SMs
}

// 52 blocks of rows, 624 tiles on 264 blocks: three rounds of 16 groups of K. In clusters of two
// five rounds of eight. The gain has to be worth the exchange: 228 tiles of 56 groups stay whole.
TEST(SwapAbChoice, SplitsWhereWholeTilesAreUneven) {
  const MoeGemmShape qwen =
      deepseek("8", {{"experts", "128"}, {"hidden", "2048"}, {"inter", "768"}});
  EXPECT_EQ(chosen(qwen).splits, 2);
  EXPECT_EQ(chosen(deepseek("8")).splits, 1);
  // No cluster fits anywhere but a few.
  const auto two_clusters = [](const SwapAbTile& tile) {
    return tile.splits > 1 ? 2 : all_used(tile);
  };
  EXPECT_EQ(chosen(qwen, two_clusters).splits, 1);
}

// gpt-oss-120b at one token: 360 narrow tiles of gate-up, of which no SM has more than three, where
// of 180 wide ones some have two; 180 narrow ones of down, where 92 wide ones leave SMs idle.
TEST(SwapAbChoice, NarrowTilesShareAnSmInBf16) {
  const auto three_narrow = [](const SwapAbTile& tile) {
    return tile == SwapAbTile{64, 1} ? 3 * kProcessors : all_used(tile);
  };
  const Params gpt_oss = {{"dtype", "bf16"},  {"block", "16"}, {"tokens", "1"},
                          {"experts", "128"}, {"topk", "4"},   {"hidden", "2880"},
                          {"inter", "2880"}};
  const MoeGemmShape gate_up = deepseek("1", gpt_oss);
  EXPECT_EQ(chosen(gate_up, three_narrow), (SwapAbTile{.columns = 64, .splits = 1}));
  EXPECT_NE(chosen(gate_up), (SwapAbTile{.columns = 64, .splits = 1}));  // two to an SM
  const MoeGemmShape down = MoeDown::shape_of(moe_gemm_case<MoeDown>(gpt_oss));
  EXPECT_EQ(chosen(down, three_narrow), (SwapAbTile{.columns = 64, .splits = 1}));
}

TEST(SwapAbChoice, LeavesManyTilesWhole) {
  for (const char* tokens : {"512", "8192"}) {
    const SwapAbTile tile = chosen(deepseek(tokens, {{"block", "32"}}));
    EXPECT_EQ(tile.columns, 128) << tokens;
    EXPECT_EQ(tile.splits, 1) << tokens;
  }
}

}  // namespace
}  // namespace moegate::moe_gemm::swap_ab
