// SPDX-License-Identifier: Apache-2.0
// How stream_k cuts its work: every block of experts of every tile once, in equal shares.
#include <gtest/gtest.h>

#include <set>

#include "kernels/dense_fc2/stream_k/plan.h"

namespace moegate::dense_fc2::stream_k {
namespace {

Plan plan_of(int tokens, int experts, int hidden) {
  const DenseFc2Shape shape = {
      .tokens = tokens, .experts = experts, .inter = 256, .hidden = hidden};
  return make_plan(shape, [](int, int blocks) { return 132 / blocks; });
}

// Shapes with fewer units than clusters, runs of less than a tile, of one and of several.
TEST(StreamKPlan, SegmentsCoverEveryUnitOnceInSlotsOfTheirOwn) {
  for (const int tokens : {1, 64, 65, 128, 129, 300, 512, 900, 20000}) {
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
            for (int lane = 0; lane < plan.lanes; ++lane) {
              for (int rank = 0; rank < plan.blocks; ++rank) {
                const int64_t slot = plan.slot(lane, cluster, segment.tile, rank);
                EXPECT_TRUE(slots.insert(slot).second) << slot;
                EXPECT_LT(slot, plan.slots());
              }
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
      for (int lane = 0; lane < plan.lanes; ++lane) {
        for (int tile = 0; tile < plan.tiles; ++tile) {
          for (int rank = 0; rank < plan.blocks; ++rank) {
            EXPECT_TRUE(places.emplace(plan.first_row(lane, rank), plan.first_column(tile)).second);
          }
        }
      }
      for (int row = 0; row < tokens; row += plan.rows) {
        for (int column = 0; column < hidden; column += plan.columns()) {
          EXPECT_TRUE(places.count({row, column})) << row << " " << column;
        }
      }
    }
  }
}

TEST(StreamKPlan, ClustersOfThreeWhereThatLeavesFewerTilesIdle) {
  for (const auto& [tokens, blocks, lanes] : {std::tuple{1, 1, 1},
                                              {128, 1, 1},
                                              {256, 2, 1},
                                              {384, 3, 1},
                                              {512, 2, 2},
                                              {640, 2, 3},
                                              {1100, 3, 3}}) {
    EXPECT_EQ(plan_of(tokens, 256, 7168).blocks, blocks) << tokens;
    EXPECT_EQ(plan_of(tokens, 256, 7168).lanes, lanes) << tokens;
  }
}

}  // namespace
}  // namespace moegate::dense_fc2::stream_k
