// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/stream_plan.h"

#include <gtest/gtest.h>

namespace moegate::qmoe {
namespace {

constexpr int kProcessors = 132;

QmoeShape gemma_fc2(int tokens) {
  return {.tokens = tokens, .experts = 128, .topk = 8, .k = 704, .n = 2816, .block = 704};
}

QmoeShape qwen_fc2(int tokens) {
  return {.tokens = tokens, .experts = 256, .topk = 8, .k = 512, .n = 2048, .block = 512};
}

QmoeShape gpt_oss_fc2(int tokens, int topk = 4) {
  return {.tokens = tokens, .experts = 32, .topk = topk, .k = 2880, .n = 2880, .block = 2880};
}

TEST(StreamPlan, GivesEveryTileATeamWhereItCan) {
  EXPECT_EQ(stream_plan(gemma_fc2(1), kProcessors),
            (StreamPlan{StreamForm::one_token_narrow, 2, 11}))
      << "11 tiles of the fullest SM, of 11 steps: 20 warps are 10 teams of two";
  EXPECT_EQ(stream_plan(qwen_fc2(1), kProcessors), (StreamPlan{StreamForm::one_token, 1, 8}))
      << "8 steps are what a warp asks for at once";
}

TEST(StreamPlan, OfALongKHasTheFewestParts) {
  EXPECT_EQ(stream_plan(gpt_oss_fc2(1), kProcessors), (StreamPlan{StreamForm::one_token, 5, 4}));
  EXPECT_EQ(stream_plan(gpt_oss_fc2(1, 8), kProcessors),
            (StreamPlan{StreamForm::many_tokens, 5, 4}))
      << "eight rows of x for four teams";
}

TEST(StreamPlan, OfManyTokensIsForThem) {
  for (const QmoeShape& shape : {gemma_fc2(2), qwen_fc2(2), gpt_oss_fc2(8)}) {
    EXPECT_EQ(stream_plan(shape, kProcessors).form, StreamForm::many_tokens) << shape.k;
  }
  EXPECT_EQ(stream_plan(qwen_fc2(2), kProcessors).teams, 16) << "no team without a tile";
  EXPECT_EQ(stream_plan(qwen_fc2(8), kProcessors).teams, 20);
}

TEST(StreamPlan, CutsATileIntoMoreWhereTeamsAreLeft) {
  const QmoeShape fc1{
      .tokens = 1, .experts = 256, .topk = 8, .k = 2048, .n = 1024, .block = 2048, .swiglu = true};
  EXPECT_EQ(stream_plan(fc1, kProcessors), (StreamPlan{StreamForm::one_token, 5, 4}))
      << "4 tiles of 32 steps; four parts would do";
}

}  // namespace
}  // namespace moegate::qmoe
