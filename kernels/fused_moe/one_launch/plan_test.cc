// SPDX-License-Identifier: Apache-2.0
// How one_launch divides a layer: every unit once, in equal shares, in memory that a block has.
#include <gtest/gtest.h>

#include <set>

#include "kernels/fused_moe/one_launch/plan.h"

namespace moegate::fused_moe::one_launch {
namespace {

constexpr int kBlocks = 132, kAvailable = 232448;  // of an H100

FusedMoeShape shape_of(int tokens, int topk, int hidden, int inter) {
  return {.tokens = tokens,
          .experts = 256,
          .topk = topk,
          .hidden = hidden,
          .inter = inter,
          .block = 16};
}

TEST(OneLaunchPlan, BlocksCoverEveryUnitOnceInEqualShares) {
  for (const int units : {0, 1, 16, 131, 132, 133, 896, 100000}) {
    for (const int blocks : {1, 7, 132}) {
      int next = 0;
      for (int block = 0; block < blocks; ++block) {
        const Range share = share_of(units, block, blocks);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.size(), units / blocks);
        EXPECT_LE(share.size(), (units + blocks - 1) / blocks);
        next = share.end;
      }
      EXPECT_EQ(next, units);
    }
  }
}

TEST(OneLaunchPlan, CutsCoverColumnsOfBothProducts) {
  for (const int octets : {1, 8, 64}) {
    for (const auto& [hidden, inter] : {std::pair{128, 128}, {640, 384}, {7168, 256}}) {
      const FusedMoeShape s = shape_of(8, 8, hidden, inter);
      std::set<int> panels, columns;
      for (int block = 0; block < kBlocks; ++block) {
        const Cut cut(s, octets, block, kBlocks);
        for (int i = cut.panels.begin; i < cut.panels.end; ++i)
          EXPECT_TRUE(panels.insert(i).second);
        for (int strip = 0; strip < cut.strips(); ++strip) {
          const int first = cut.columns.begin + 2 * strip;
          for (int i = first; i < std::min(first + 2, cut.columns.end); ++i)
            EXPECT_TRUE(columns.insert(i).second);
        }
      }
      EXPECT_EQ(static_cast<int>(panels.size()), octets * inter / kOctet);
      EXPECT_EQ(static_cast<int>(columns.size()), hidden / kOctet);
    }
  }
}

TEST(OneLaunchPlan, StagesOfATileHoldAllGroups) {
  for (int groups = 1; groups < 60; ++groups) {
    const int chunks = chunks_of(groups * kMoeGroup);
    EXPECT_GE(chunks * kStageGroups, groups);
    EXPECT_LT((chunks - 1) * kStageGroups, groups);
  }
}

TEST(OneLaunchPlan, FitsSharedMemory) {
  for (const int tokens : {1, 2, 8, 12}) {
    for (const auto& [hidden, inter] : {std::pair{128, 128}, {2048, 768}, {7168, 256}}) {
      const Plan plan = make_plan(shape_of(tokens, 8, hidden, inter), kBlocks, kAvailable);
      EXPECT_GE(plan.stages, kWarps) << tokens << " " << hidden;
      EXPECT_LE(plan.stages, kMostStages);
      EXPECT_LE(plan.shared_bytes, kAvailable);
      EXPECT_LE(plan.down_sets, kMostSets);
      EXPECT_LE(plan.up_sets, kMostSets);
      EXPECT_EQ(plan.stages % kCopiers, 0);
      EXPECT_EQ(plan.row_bytes % 16, 0);
      EXPECT_EQ(plan.row_scales % 4, 0);
    }
  }
}

// In shared memory: scale factors of all blocks of 128 that a share touches, sums of all strips
// that are multiplied at once, and Shared at a multiple of 8.
TEST(OneLaunchPlan, HasRoomForScaleFactorsAndSums) {
  for (const int tokens : {1, 3, 8, 12}) {
    for (const auto& [hidden, inter] :
         {std::pair{128, 128}, {640, 384}, {7168, 256}, {7168, 768}}) {
      const FusedMoeShape s = shape_of(tokens, 8, hidden, inter);
      const Plan plan = make_plan(s, kBlocks, kAvailable);
      EXPECT_EQ((plan.row_scales + plan.up_scales + plan.down_scales + plan.parts) % 2, 0);
      EXPECT_LE(plan.up_sets * plan.up_part, plan.parts);
      EXPECT_LE(plan.down_sets * plan.down_part, plan.parts);
      for (const int octets : {1, 8, s.rows()}) {
        for (int block = 0; block < kBlocks; ++block) {
          const Cut cut(s, octets, block, kBlocks);
          EXPECT_LE(cut.up_blocks.size() * 2 * (hidden / kMoeGroup), plan.up_scales);
          EXPECT_LE(octets * cut.down_blocks.size() * (inter / kMoeGroup), plan.down_scales);
          const bool at_once = cut.strips() <= plan.strips_at_once;
          EXPECT_GE(plan.down_sets,
                    (at_once ? 1 : 2) * std::min(cut.strips(), plan.strips_at_once));
        }
      }
    }
  }
}

// At one token memory need not stop at the grid's barrier.
TEST(OneLaunchPlan, HoldsABlocksShareOfDownAtOneToken) {
  for (const auto& [hidden, inter] : {std::pair{7168, 256}, {2048, 768}}) {
    const FusedMoeShape s = shape_of(1, 8, hidden, inter);
    const Plan plan = make_plan(s, kBlocks, kAvailable);
    for (int block = 0; block < kBlocks; ++block) {
      const Cut cut(s, 8, block, kBlocks);
      EXPECT_LE(cut.strips() * 8 * cut.down_chunks, plan.stages) << hidden;
    }
  }
}

TEST(OneLaunchPlan, LeavesLongRowsToOthers) {
  EXPECT_LT(make_plan(shape_of(64, 1, 7168, 2048), kBlocks, kAvailable).stages, kWarps);
  EXPECT_LT(make_plan(shape_of(8, 8, 1 << 16, 128), kBlocks, kAvailable).stages, kWarps);
  EXPECT_EQ(make_plan(shape_of(1, 1, 128, 128), kBlocks, 0).stages, 0);
}

}  // namespace
}  // namespace moegate::fused_moe::one_launch
