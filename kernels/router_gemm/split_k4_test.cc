// SPDX-License-Identifier: Apache-2.0
// The plans of split_k4: that they hold all logits, and which are chosen where they were measured.
#include "kernels/router_gemm/split_k4.h"

#include <gtest/gtest.h>

namespace moegate::router_gemm {
namespace {

RouterGemmShape shape_of(int tokens, int experts, int hidden) {
  return {.tokens = tokens,
          .experts = experts,
          .topk = 1,
          .hidden = hidden,
          .weights = DType::bf16,
          .out = DType::f32,
          .biased = 0,
          .edges = 0};
}

/// As H200s said of their 132 SMs.
int clusters_of_h200(const SplitPlan& plan) {
  return plan.size() == 4 ? 30 : 66;
}

TEST(SplitPlan, ItsClustersHaveAllLogits) {
  for (const SplitPlan& plan : kSplitPlans) {
    for (const int tokens : {1, 64, 65, 127, 129, 256, 1000}) {
      for (const int experts : {2, 32, 33, 64, 96, 128, 160, 256, 264}) {
        const RouterGemmShape shape = shape_of(tokens, experts, 2880);
        const int pair = plan.blocks == 1 ? kPair : 1,
                  of_experts = plan.same_tokens(shape) ? pair : 1;
        EXPECT_GE(plan.expert_clusters(shape) * of_experts * plan.experts, experts);
        EXPECT_GE(plan.token_clusters(shape) * (pair / of_experts) * plan.tokens, tokens);
        EXPECT_EQ(plan.size(), plan.blocks == 1 ? kPair : plan.blocks);
      }
    }
  }
}

TEST(SplitPlan, IsWhatWasFastestOnAnH200) {
  const auto chosen = [](int tokens, int experts, int hidden) {
    const SplitPlan plan = plan_split(shape_of(tokens, experts, hidden), clusters_of_h200);
    return fmt::format("{} x {} / {}", plan.tokens, plan.experts, plan.blocks);
  };
  EXPECT_EQ(chosen(1, 32, 2880), "64 x 32 / 4");
  EXPECT_EQ(chosen(2048, 32, 2880), "64 x 32 / 2") << "two waves of clusters of four";
  EXPECT_EQ(chosen(8192, 32, 2880), "64 x 32 / 1");
  EXPECT_EQ(chosen(512, 128, 2880), "64 x 64 / 4");
  EXPECT_EQ(chosen(256, 256, 7168), "64 x 64 / 4");
  EXPECT_EQ(chosen(512, 256, 7168), "64 x 128 / 4");
  EXPECT_EQ(chosen(1024, 256, 7168), "64 x 64 / 2");
  EXPECT_EQ(chosen(2048, 256, 7168), "64 x 64 / 1");
  EXPECT_EQ(chosen(4096, 256, 7168), "64 x 128 / 1");
  EXPECT_EQ(chosen(8192, 256, 7168), "128 x 128 / 1");
}

TEST(SplitPlan, NeedsNoClusterThatAGpuCannotHold) {
  const SplitPlan plan =
      plan_split(shape_of(64, 256, 7168), [](const SplitPlan& p) { return p.size() > 2 ? 0 : 50; });
  EXPECT_EQ(plan.blocks, 2);
}

}  // namespace
}  // namespace moegate::router_gemm
