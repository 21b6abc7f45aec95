// SPDX-License-Identifier: Apache-2.0
// How sparse_rows divides its work: columns for every SM, shared memory that is filled and not
// exceeded.
#include "kernels/dense_fc2/sparse_rows/plan.h"

#include <gtest/gtest.h>

namespace moegate::dense_fc2::sparse_rows {
namespace {

constexpr int64_t kH200Shared = 227 << 10;

DeviceFacts device_of(int processors, int64_t shared) {
  DeviceFacts facts;
  facts.processors = processors;
  facts.shared_per_block = shared;
  return facts;
}

DenseFc2Shape shape_of(int tokens, int inter, int hidden, bool block_scales = false) {
  return {.tokens = tokens,
          .experts = 256,
          .topk = 8,
          .inter = inter,
          .hidden = hidden,
          .k_tile = 128,
          .block_scales = block_scales,
          .edges = false};
}

Plan h200_plan(const DenseFc2Shape& shape) {
  return make_plan(shape, device_of(132, kH200Shared));
}

TEST(SparseRowsPlan, ColumnsGoToAsManySmsAsThereAre) {
  const auto columns = [](int hidden) { return h200_plan(shape_of(1, 256, hidden)).columns; };
  EXPECT_EQ(columns(8), 8);
  EXPECT_EQ(columns(132 * 8), 8);
  EXPECT_EQ(columns(132 * 8 + 8), 16);
  EXPECT_EQ(columns(7168), 56);
  EXPECT_EQ(columns(132 * 64 + 8), 64) << "in two waves";
}

TEST(SparseRowsPlan, SharedMemoryHoldsItAtAllSizes) {
  for (int hidden = 8; hidden <= 20000; hidden += 1048) {
    for (const int tokens : {1, 31, 32, 33, 64, 65, 128, 129, 256, 511, 512}) {
      for (const bool block_scales : {false, true}) {
        const Plan plan = h200_plan(shape_of(tokens, 256, hidden, block_scales));
        EXPECT_LE(plan.shared_bytes, static_cast<size_t>(kH200Shared));
        EXPECT_GE(plan.stages, kFewestStages);
        EXPECT_LE(plan.stages, kMaxStages);
        EXPECT_LE(plan.gather_warps, plan.stages);
        EXPECT_EQ(plan.pitch / 8 % 2, 1);
        EXPECT_GE(plan.pitch, plan.columns);
        EXPECT_GE(plan.words() * 32, tokens);
        EXPECT_GE(plan.batch(), 8);
        // A product reads 64 rows of weights: beyond the last ones it reads the gathered rows.
        EXPECT_GE(plan.stages * plan.span * kChunkRows, kMostColumns - plan.columns);
      }
    }
  }
}

TEST(SparseRowsPlan, TheLargestCaseOfTheSuiteKeepsSixStages) {
  EXPECT_EQ(h200_plan(shape_of(512, 256, 7168)).stages, 6);
  EXPECT_EQ(h200_plan(shape_of(512, 256, 7168)).span, 2);
}

TEST(SparseRowsPlan, ASpanDividesAnExpertAndHasOneScaleFactor) {
  EXPECT_EQ(h200_plan(shape_of(1, 128, 7168)).span, 1);
  EXPECT_EQ(h200_plan(shape_of(1, 384, 7168)).span, 1);
  EXPECT_EQ(h200_plan(shape_of(1, 512, 7168)).span, 2);
  EXPECT_EQ(h200_plan(shape_of(1, 512, 7168, true)).span, 1);
}

TEST(SparseRowsPlan, TheMostTokensAreThoseWhoseSumsFit) {
  const DenseFc2Shape shape = shape_of(1, 256, 7168);
  EXPECT_EQ(most_tokens(shape, device_of(132, kH200Shared)), kMostTokens);
  EXPECT_EQ(most_tokens(shape, device_of(132, 0)), 0);
  const DeviceFacts small = device_of(132, 100 << 10);
  const int most = most_tokens(shape, small);
  EXPECT_GT(most, 150);
  EXPECT_GE(make_plan(shape_of(most, 256, 7168), small).stages, kFewestStages);
  EXPECT_LT(make_plan(shape_of(most + 1, 256, 7168), small).stages, kFewestStages);
}

}  // namespace
}  // namespace moegate::dense_fc2::sparse_rows
