// SPDX-License-Identifier: Apache-2.0
// The plans of tiles: what the kernel takes for granted, for many shapes and GPUs; those of the
// GPUs on which it was measured.
#include "kernels/router_gemm/tiles_plan.h"

#include <gtest/gtest.h>

namespace moegate::router_gemm {
namespace {

RouterGemmShape shape_of(int tokens, int experts) {
  return {.tokens = tokens,
          .experts = experts,
          .topk = 1,
          .hidden = 2880,
          .weights = DType::bf16,
          .out = DType::f32,
          .biased = 0,
          .edges = 0};
}

/// As four H200s said of their 132 SMs.
int clusters_of_h200(const TilePlan& plan) {
  return plan.size() == 16 ? 7 : plan.size() == 8 ? 15 : plan.size() == 4 ? 30 : 66;
}

/// GPCs of 16 SMs and a rest, without clusters of 16.
ClustersAtOnce in_gpcs(int processors) {
  return [processors](const TilePlan& plan) {
    if (plan.size() > 8) return 0;
    return processors / 16 * (16 / plan.size()) + processors % 16 / plan.size();
  };
}

void expect_legal(const RouterGemmShape& shape, const TilePlan& plan) {
  const auto is_power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
  EXPECT_TRUE((plan.tokens == 64 && (plan.experts == 32 || plan.experts == 64)) ||
              plan.experts == 128);
  EXPECT_TRUE(plan.tokens == 64 || plan.tokens == 128);
  // Two parts of 32 to a block in each round, a cluster's size, and rows to each neighbour.
  EXPECT_TRUE(is_power(plan.blocks) && plan.blocks <= 16) << plan.blocks;
  EXPECT_LE(plan.size(), plan.blocks > 1 ? 16 : 8);
  EXPECT_EQ(plan.tokens / plan.expert_tiles % 8, 0) << plan.expert_tiles;
  EXPECT_EQ(plan.experts / plan.token_tiles % 8, 0) << plan.token_tiles;
  // Whole clusters, which have all logits.
  EXPECT_EQ(plan.tiles_of_experts(shape) % plan.expert_tiles, 0) << plan.expert_tiles;
  EXPECT_EQ(plan.tiles_of_tokens(shape) % plan.token_tiles, 0) << plan.token_tiles;
  EXPECT_EQ(plan.clusters(shape) * plan.size(), plan.tiles(shape) * plan.blocks);
  EXPECT_GE(plan.tiles_of_experts(shape) * plan.experts, shape.experts);
  EXPECT_GE(plan.tiles_of_tokens(shape) * plan.tokens, shape.tokens);
}

TEST(TilesPlan, IsWhatTheKernelTakes) {
  for (const int processors : {1, 8, 78, 114, 132, 160}) {
    for (const int experts : {2, 17, 32, 33, 64, 100, 128, 256, 264, 520, 1024}) {
      for (int tokens = 1; tokens < 40'000; tokens += 1 + tokens / 9) {
        const auto shape = shape_of(tokens, experts);
        SCOPED_TRACE(fmt::format("{} tokens, {} experts, {} SMs", tokens, experts, processors));
        for (const ClustersAtOnce& at_once : {in_gpcs(processors), ClustersAtOnce(clusters_of_h200),
                                              ClustersAtOnce([](const TilePlan&) { return 0; })}) {
          const TilePlan plan = plan_tiles(shape, processors, at_once);
          expect_legal(shape, plan);
          const int clusters = plan.clusters(shape);
          if (plan.size() > 2 && clusters * plan.size() <= processors) {
            EXPECT_LE(clusters, at_once(plan)) << "a second wave of clusters of " << plan.size();
          }
        }
      }
    }
  }
}

// What was measured on them, so that a row of the gallery stays that of its plan.
TEST(TilesPlan, IsThatOfTheFigures) {
  const auto plan = [](int experts, int tokens) {
    return plan_tiles(shape_of(tokens, experts), 132, clusters_of_h200);
  };
  EXPECT_EQ(plan(32, 128), (TilePlan{64, 32, 16}));
  EXPECT_EQ(plan(32, 2048), (TilePlan{64, 32, 2}));
  EXPECT_EQ(plan(32, 8192), (TilePlan{64, 32, 1, 1, 2}));
  EXPECT_EQ(plan(128, 128), (TilePlan{64, 32, 8}));
  EXPECT_EQ(plan(128, 8192), (TilePlan{64, 128, 1, 1, 2}));
  EXPECT_EQ(plan(256, 512), (TilePlan{64, 32, 2}));
  EXPECT_EQ(plan(256, 2048), (TilePlan{64, 64, 1, 2}));
  EXPECT_EQ(plan(256, 8192), (TilePlan{128, 128, 1, 2}));
}

// A block that is alone: tiles of all of K whose number is odd.
TEST(TilesPlan, CanBeOneBlock) {
  EXPECT_EQ(plan_tiles(shape_of(64 * 131, 17), 132, clusters_of_h200), (TilePlan{64, 32}));
  EXPECT_EQ(plan_tiles(shape_of(64 * 67, 32), 132, clusters_of_h200), (TilePlan{64, 32}));
}

}  // namespace
}  // namespace moegate::router_gemm
