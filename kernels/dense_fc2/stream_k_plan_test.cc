// SPDX-License-Identifier: Apache-2.0
// How stream_k cuts its work: every block of experts of every tile once, in equal shares.
#include <gtest/gtest.h>

#include <set>

#include "kernels/dense_fc2/stream_k_plan.h"

namespace moegate::gemm::stream_k {
namespace {

Plan plan_of(int tokens, int experts, int hidden) {
  const DenseFc2Shape shape = {
      .tokens = tokens, .experts = experts, .inter = 256, .hidden = hidden};
  return make_plan(shape, [](int, int blocks) { return 132 / blocks; });
}

// Shapes with fewer units than clusters, runs of less than a tile, of one and of several.
TEST(StreamKPlan, SegmentsCoverEveryUnitOnceInSlotsOfTheirOwn) {
  for (const int tokens : {1, 64, 65, 128, 129, 300, 512, 900}) {
    for (const int experts : {1, 3, 40, 256}) {
      for (const int hidden : {8, 264, 7168}) {
        const Plan plan = plan_of(tokens, experts, hidden);
        std::set<int64_t> slots;
        int64_t next = 0;
        for (int cluster = 0; cluster < plan.clusters; ++cluster) {
          const int64_t end = plan.begin(cluster + 1);
          EXPECT_EQ(plan.begin(cluster), next);
          EXPECT_LE(end - next, plan.units() / plan.clusters + 1);
          ASSERT_LT(next, end);
          while (next < end) {
            const Segment segment = plan.segment(next, end);
            EXPECT_EQ(plan.cluster_of(next), cluster);
            EXPECT_EQ(int64_t{segment.tile} * experts + segment.first, next);
            ASSERT_LT(segment.first, segment.last);
            ASSERT_LE(segment.last, experts);
            for (int rank = 0; rank < plan.blocks; ++rank) {
              const int64_t slot = plan.slot(cluster, segment.tile, rank);
              EXPECT_TRUE(slots.insert(slot).second) << slot;
              EXPECT_LT(slot, plan.slots());
            }
            next += segment.last - segment.first;
          }
        }
        EXPECT_EQ(next, plan.units());
      }
    }
  }
}

TEST(StreamKPlan, BlocksCoverEveryRowAndColumnOnce) {
  for (const int tokens : {1, 128, 129, 384, 512, 900}) {
    for (const int hidden : {8, 264, 7168}) {
      const Plan plan = plan_of(tokens, 4, hidden);
      std::set<std::pair<int, int>> places;
      for (int tile = 0; tile < plan.tiles; ++tile) {
        for (int rank = 0; rank < plan.blocks; ++rank) {
          EXPECT_TRUE(
              places.emplace(plan.first_row(tile, rank), plan.first_column(tile, rank)).second);
        }
      }
      for (int row = 0; row < tokens; row += plan.rows) {
        for (int column = 0; column < hidden; column += kColumns) {
          EXPECT_TRUE(places.count({row, column})) << row << " " << column;
        }
      }
    }
  }
}

TEST(StreamKPlan, BlocksShareTheWeightsOfAllRowsWhereFewTilesAreIdle) {
  const auto blocks = [](int tokens) { return plan_of(tokens, 256, 7168).blocks; };
  EXPECT_FALSE(plan_of(128, 256, 7168).share_weights);
  EXPECT_TRUE(plan_of(129, 256, 7168).share_weights);
  EXPECT_EQ(blocks(256), 2);
  EXPECT_EQ(blocks(384), 3);
  EXPECT_EQ(blocks(512), 4);
  EXPECT_EQ(blocks(640), 3);  // five rows of tiles and an idle one
}

}  // namespace
}  // namespace moegate::gemm::stream_k
