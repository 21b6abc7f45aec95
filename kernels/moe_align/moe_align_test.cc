// SPDX-License-Identifier: Apache-2.0
// The truth against an answer worked out by hand, what check() takes and rejects, and the host
// variants against the truth through the same verification that the harness uses.
#include "kernels/moe_align/moe_align.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/moe_align/moe_align_testing.h"

namespace moegate::moe_align {
namespace {

const Variant& host_variant(const std::string& name) {
  return find_variant(MoeAlign::kOp, Backend::host, name);
}

void align(MoeAlign& problem) {
  problem.poison();
  problem.reserve_workspace(1 << 16);
  host_variant("counting_sort").launch(problem, {nullptr, problem.device().facts()});
}

bool all_ok(const Checked& checked) {
  return std::all_of(checked.accuracy.begin(), checked.accuracy.end(),
                     [](const Accuracy& a) { return a.ok; });
}

TEST(MoeAlignTruth, GroupsPadsAndSkips) {
  MoeAlignShape s{};
  s.tokens = 3;
  s.experts = 4;
  s.topk = 3;
  s.block = 2;
  const auto truth = moe_align_truth(s, {3, 0, 4, 3, -1, 1, 3, 1, 9});
  EXPECT_EQ(truth.sorted_token_ids, (std::vector<int32_t>{1, 9,          // expert 0
                                                          5, 7,          // expert 1
                                                          0, 3, 6, 9}))  // expert 3
      << "9 is padding";
  EXPECT_EQ(truth.expert_ids, (std::vector<int32_t>{0, 1, 3, 3}));
  EXPECT_EQ(truth.num_tokens_post_padded, std::vector<int32_t>{8});
}

TEST(MoeAlign, CapacityIsThatOfTheWorstRouting) {
  MoeAlignShape s{};
  s.tokens = 4;
  s.topk = 2;
  s.experts = 8;
  s.block = 16;
  EXPECT_EQ(s.capacity(), 8 + 8 * 15);
  EXPECT_EQ(s.blocks(), 8);
  s.experts = 9;  // more than rows
  EXPECT_EQ(s.capacity(), 8 * 16);
  s.experts = 3;
  EXPECT_EQ(s.capacity(), 8 + 3 * 15);
  EXPECT_EQ(s.blocks(), 4);
}

TEST(MoeAlign, ParametersAreChecked) {
  EXPECT_NO_THROW(MoeAlign::validate(moe_align_case({})));
  EXPECT_THROW(MoeAlign::validate(moe_align_case({{"topk", "9"}})), Error);
  EXPECT_THROW(MoeAlign::validate(moe_align_case({{"block", "0"}})), Error);
  EXPECT_THROW(MoeAlign::validate(moe_align_case({{"ids", "some"}})), Error);
  EXPECT_THROW(MoeAlign::validate(moe_align_case({{"routing", "zipf"}})), Error);
}

TEST(MoeAlign, CostAndFactsFollowTheData) {
  const auto device = open_host_device();
  const MoeAlign problem(*device,
                         moe_align_case({{"tokens", "5"}, {"topk", "2"}, {"routing", "hot:2:1"}}));
  const auto facts = problem.facts();
  EXPECT_EQ(facts[0].name, "active_experts");
  EXPECT_EQ(facts[0].value, 2);
  EXPECT_EQ(facts[1].value, 4);   // 5 rows on each of 2 experts of 8: mean 1.25
  EXPECT_EQ(facts[2].value, 16);  // two blocks of 4 for each
  EXPECT_EQ(problem.cost().read_bytes, 4 * 10);
  EXPECT_EQ(problem.cost().write_bytes, 4 * (16 + 4 + 1));
}

TEST(MoeAlign, RowsOfAnExpertMayComeInAnyOrder) {
  const auto device = open_host_device();
  MoeAlign problem(*device,
                   moe_align_case({{"tokens", "4"}, {"topk", "2"}, {"routing", "hot:2:1"}}));
  align(problem);
  const Checked ascending = problem.check();
  ASSERT_TRUE(all_ok(ascending));
  auto* rows = problem.args().sorted_token_ids;  // two groups of four rows, without padding
  std::reverse(rows, rows + 4);
  EXPECT_TRUE(all_ok(problem.check()));
  EXPECT_EQ(problem.check().hash, ascending.hash);
  std::swap(rows[3], rows[4]);  // but each in its own group
  EXPECT_FALSE(problem.check().accuracy[1].ok);
  EXPECT_NE(problem.check().hash, ascending.hash);
}

TEST(MoeAlign, WhatLiesBeyondTheGroupsIsNotLookedAt) {
  const auto device = open_host_device();
  MoeAlign problem(*device, moe_align_case({{"routing", "hot:3:1"}}));
  align(problem);
  const MoeAlignArgs args = problem.args();
  const Checked checked = problem.check();
  ASSERT_LT(*args.num_tokens_post_padded, problem.shape.capacity());
  args.sorted_token_ids[*args.num_tokens_post_padded] = 0;
  args.expert_ids[problem.shape.blocks() - 1] = 0;
  EXPECT_TRUE(all_ok(problem.check()));
  EXPECT_EQ(problem.check().hash, checked.hash);
  args.sorted_token_ids[*args.num_tokens_post_padded - 1] = 0;  // padding of the last group
  EXPECT_FALSE(problem.check().accuracy[1].ok);
}

TEST(MoeAlign, ControlsSpoilWhatTheySay) {
  const auto device = open_host_device();
  MoeAlign problem(*device,
                   moe_align_case({{"tokens", "5"}, {"topk", "2"}, {"routing", "hot:2:1"}}));
  align(problem);
  problem.corruptions().token_dropped.apply();
  EXPECT_GT(problem.check().accuracy[1].mismatches, 0);
  align(problem);
  problem.corruptions().experts_swapped.apply();
  EXPECT_GT(problem.check().accuracy[1].mismatches, 0);
  EXPECT_FALSE(problem.corruptions().scales_transposed.apply);
}

TEST(MoeAlign, SomeIdsAreSkippedButNeverAll) {
  const auto device = open_host_device();
  for (const char* seed : {"1", "2", "3", "4"}) {
    MoeAlign one(
        *device,
        moe_align_case({{"tokens", "1"}, {"topk", "1"}, {"ids", "some_skipped"}, {"seed", seed}}));
    EXPECT_EQ(one.facts()[0].value, 1);
  }
  MoeAlign many(*device, moe_align_case({{"tokens", "400"}, {"ids", "some_skipped"}}));
  const MoeAlignArgs args = many.args();
  int negative = 0, next = 0, skipped = 0;
  for (int row = 0; row < many.shape.rows(); ++row) {
    negative += args.topk_ids[row] == -1;
    next += args.topk_ids[row] == many.shape.experts;
    skipped += !many.shape.has(args.topk_ids[row]);
  }
  EXPECT_GT(negative, 0);
  EXPECT_GT(next, 0);
  EXPECT_NEAR(skipped, 150, 50);  // an eighth of 1200
}

TEST(MoeAlign, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  // 5000 tokens: more than one thread.
  for (const char* tokens : {"1", "65", "5000"}) {
    for (const char* ids : {"valid", "some_skipped"}) {
      for (const char* block : {"1", "16", "128"}) {
        Bench bench(*device, moe_align_case({{"tokens", tokens},
                                             {"experts", "60"},
                                             {"topk", "6"},
                                             {"block", block},
                                             {"ids", ids}}));
        for (const Variant& v : all_variants()) {
          if (v.op != MoeAlign::kOp || v.backend != Backend::host) continue;
          const Result result = bench.verify(v);
          EXPECT_EQ(result.status, Status::ok)
              << tokens << " " << ids << " " << block << " " << v.name << ": " << result.why;
        }
      }
    }
  }
}

TEST(MoeAlign, ThreadsKeepTheOrderOfRows) {
  const auto device = open_host_device();
  MoeAlign problem(*device, moe_align_case({{"tokens", "5000"}, {"experts", "16"}}));
  align(problem);
  const MoeAlignArgs args = problem.args();
  const std::vector<int32_t> expected(args.sorted_token_ids,
                                      args.sorted_token_ids + *args.num_tokens_post_padded);
  DeviceFacts facts = device->facts();
  facts.processors = 3;
  problem.poison();
  host_variant("parallel_counting_sort").launch(problem, {nullptr, facts});
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), args.sorted_token_ids));
}

}  // namespace
}  // namespace moegate::moe_align
