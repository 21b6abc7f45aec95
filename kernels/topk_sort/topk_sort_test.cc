// SPDX-License-Identifier: Apache-2.0
// The truth against answers worked out by hand, and the host variants against the truth through the
// same verification that the harness uses.
#include "kernels/topk_sort/topk_sort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/topk_sort/topk_sort_testing.h"

namespace moegate::topk_sort {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TopkSortShape shape_of(int tokens, int experts, int topk) {
  TopkSortShape s{};
  s.tokens = tokens;
  s.experts = experts;
  s.topk = topk;
  s.hidden = 8;
  s.unit = 4;
  s.groups = s.topk_groups = 1;
  s.renorm = true;
  s.scale = 1;
  return s;
}

TEST(TopkSortTruth, SortsPadsAndWeighs) {
  // Two tokens, four experts, two each: token 0 takes 2 then 0, token 1 takes 2 then 3.
  const auto truth =
      topk_sort_truth(shape_of(2, 4, 2), {1, 0, 2, -1, -5, -5, 3, 3 - std::log(3.0f)}, {});
  EXPECT_EQ(truth.topk_ids, (std::vector<int32_t>{2, 0, 2, 3}));
  const int32_t pad = 2 << 24 | 2;
  EXPECT_EQ(truth.sorted_ids, (std::vector<int32_t>{1 << 24 | 0, pad, pad, pad,     // expert 0
                                                    0, 1, pad, pad,                 // expert 2
                                                    1 << 24 | 1, pad, pad, pad}));  // expert 3
  EXPECT_EQ(truth.sorted_expert_ids, (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(truth.num_valid, (std::vector<int32_t>{12, 2}));
  EXPECT_NEAR(truth.sorted_weights[4], 1 / (1 + std::exp(-1.0)), 1e-12);
  EXPECT_NEAR(truth.sorted_weights[5], 0.75, 1e-7);
  EXPECT_NEAR(truth.sorted_weights[8], 0.25, 1e-7);
  EXPECT_EQ(truth.sorted_weights[6], 0);
}

TEST(TopkSortTruth, TiesGoToTheLowestExpert) {
  const auto truth = topk_sort_truth(shape_of(1, 5, 3), {1, 2, 1, 2, 1}, {});
  EXPECT_EQ(truth.topk_ids, (std::vector<int32_t>{1, 3, 0}));
}

TEST(TopkSortTruth, WithoutRenormWeightsAreProbabilities) {
  TopkSortShape s = shape_of(1, 4, 2);
  s.renorm = false;
  const auto truth = topk_sort_truth(s, {0, 0, 0, 0}, {});
  EXPECT_NEAR(truth.topk_weights[0], 0.25, 1e-12);
  s.scoring = Scoring::topk_softmax;
  EXPECT_NEAR(topk_sort_truth(s, {0, 0, 0, 0}, {}).topk_weights[0], 0.5, 1e-12);
}

TEST(TopkSortTruth, GroupsLimitTheChoiceAndBiasOnlySelects) {
  TopkSortShape s = shape_of(1, 6, 2);
  s.scoring = Scoring::noaux_tc;
  s.groups = 3;
  s.topk_groups = 1;
  s.scale = 2.5;
  // Group 0 holds the single best expert, group 1 the best pair once the bias is added.
  const auto truth = topk_sort_truth(s, {4, -4, 1, 1, 0, 0}, {0, 0, 0.5, 0.5, 0, 0});
  EXPECT_EQ(truth.topk_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_NEAR(truth.topk_weights[0], 1.25, 1e-12);  // unbiased, renormalised, scaled
}

TEST(TopkSortTruth, TooFewFiniteLogitsAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto truth = topk_sort_truth(
      shape_of(3, 4, 2), {-kInf, -kInf, 1, -kInf, nan, 5, nan, 4, nan, nan, nan, nan}, {});
  EXPECT_EQ(truth.topk_ids, (std::vector<int32_t>{2, 0, 1, 3, 0, 1}));
  EXPECT_EQ(truth.topk_weights[0], 1);
  EXPECT_EQ(truth.topk_weights[1], 0);
  EXPECT_NEAR(truth.topk_weights[2], 1 / (1 + std::exp(-1.0)), 1e-12);
  EXPECT_EQ(truth.topk_weights[4], 0);
  EXPECT_EQ(truth.topk_weights[5], 0);
}

TEST(TopkSortTruth, AmbiguityIsSeenInScoresAndGroups) {
  TopkSortShape s = shape_of(1, 4, 1);
  s.scoring = Scoring::noaux_tc;
  const float zero[4] = {0, 0, 0, 0};
  const float close[4] = {1, 1.000001f, 0, -1}, equal[4] = {1, 1, 0, -1}, apart[4] = {1, 2, 0, -1};
  EXPECT_TRUE(selection_is_ambiguous(s, close, zero));
  EXPECT_FALSE(selection_is_ambiguous(s, equal, zero));  // the tie rule decides
  EXPECT_FALSE(selection_is_ambiguous(s, apart, zero));
  s.groups = 2;
  s.topk_groups = 1;
  const float groups[4] = {1, 0, 1.000001f, 0};
  EXPECT_TRUE(selection_is_ambiguous(s, groups, zero));
}

TEST(TopkSort, ParametersAreCheckedTogether) {
  const std::map<std::string, std::string> good = {
      {"tokens", "3"}, {"experts", "8"}, {"topk", "2"}, {"hidden", "8"}};
  const auto with = [&](std::map<std::string, std::string> more) {
    more.insert(good.begin(), good.end());
    return topk_sort_case(more);
  };
  EXPECT_NO_THROW(TopkSort::validate(with({})));
  EXPECT_THROW(TopkSort::validate(with({{"groups", "2"}})), Error);
  EXPECT_THROW(TopkSort::validate(with({{"scoring", "noaux_tc"}, {"groups", "3"}})), Error);
  EXPECT_THROW(TopkSort::validate(with({{"scoring", "noaux_tc"}, {"logits", "nan"}})), Error);
  EXPECT_THROW(TopkSort::validate(with({{"topk", "9"}})), Error);
  EXPECT_THROW(TopkSort::validate(with({{"dtype", "fp64"}})), Error);
  EXPECT_THROW(TopkSort::validate(with({{"routing", "zipf"}})), Error);
}

TEST(TopkSort, CostAndFactsFollowTheData) {
  const auto device = open_host_device();
  const TopkSort problem(*device, topk_sort_case({{"tokens", "5"},
                                                  {"experts", "8"},
                                                  {"topk", "2"},
                                                  {"hidden", "16"},
                                                  {"routing", "hot:2:1"}}));
  const auto facts = problem.facts();
  EXPECT_EQ(facts[0].name, "active_experts");
  EXPECT_EQ(facts[0].value, 2);
  EXPECT_EQ(facts[1].value, 4);  // 5 tokens on each of 2 experts of 8: mean 1.25
  EXPECT_EQ(facts[2].value, 64);
  EXPECT_EQ(problem.cost().read_bytes, 5 * 8 * 4);
  EXPECT_EQ(problem.cost().write_bytes, 64 * 8 + 2 * 4 + 8 + 5 * 16 * 2);
}

TEST(TopkSort, ControlsSpoilWhatTheySay) {
  const auto device = open_host_device();
  const auto verify = [&](TopkSort& problem) {
    for (const Variant& v : all_variants()) {
      if (v.op != TopkSort::kOp || v.backend != Backend::host || v.name != "fused") continue;
      problem.reserve_workspace(4096);
      v.launch(problem, {nullptr, device->facts()});
    }
    EXPECT_TRUE(problem.check().accuracy[1].ok) << problem.check().accuracy[1].why;
  };
  TopkSort problem(*device, topk_sort_case({{"tokens", "5"},
                                            {"experts", "8"},
                                            {"topk", "2"},
                                            {"hidden", "8"},
                                            {"unit", "4"},
                                            {"routing", "hot:2:1"}}));
  verify(problem);
  problem.corruptions().token_dropped.apply();
  EXPECT_EQ(problem.check().accuracy[1].mismatches, 2) << "the token's two slots";
  verify(problem);
  problem.corruptions().experts_swapped.apply();
  EXPECT_EQ(problem.check().accuracy[1].mismatches, 8) << "a block of four rows, twice";
  EXPECT_FALSE(problem.corruptions().scales_transposed.apply);
}

TEST(TopkSort, EverySeedIsSummarised) {
  const auto device = open_host_device();
  Bench bench(
      *device,
      topk_sort_case(
          {{"tokens", "5"}, {"experts", "8"}, {"topk", "2"}, {"hidden", "8"}, {"seed", "3"}}));
  for (const Variant& v : all_variants()) {
    if (v.op != TopkSort::kOp || v.backend != Backend::host || v.name != "fused") continue;
    const Result first = bench.verify(v), again = bench.verify(v);
    ASSERT_EQ(first.seeds.size(), 8u);
    EXPECT_EQ(first.seeds[0].seed, 3);
    EXPECT_EQ(first.seeds[0].worst_row, first.accuracy[2].worst_row);
    EXPECT_EQ(first.seeds[0].bias, first.accuracy[2].scale - 1);
    EXPECT_GT(first.seeds[0].rel_l2, 0);
    EXPECT_NE(first.seeds[0].hash, first.seeds[1].hash);
    EXPECT_EQ(first.seeds[1].hash, again.seeds[1].hash);
  }
}

TEST(TopkSort, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  for (const char* tokens : {"1", "7", "65", "200"}) {
    for (const char* scoring : {"softmax", "topk_softmax", "noaux_tc"}) {
      for (const char* logits : {"normal", "ties"}) {
        Bench bench(*device, topk_sort_case({{"tokens", tokens},
                                             {"experts", "60"},
                                             {"topk", "6"},
                                             {"hidden", "33"},
                                             {"unit", "16"},
                                             {"scoring", scoring},
                                             {"logits", logits},
                                             {"dtype", "bf16"},
                                             {"scale", "2.5"}}));
        for (const Variant& v : all_variants()) {
          if (v.op != TopkSort::kOp || v.backend != Backend::host) continue;
          const Result result = bench.verify(v);
          EXPECT_EQ(result.status, Status::ok)
              << tokens << " " << scoring << " " << logits << " " << v.name << ": " << result.why;
        }
      }
    }
  }
}

}  // namespace
}  // namespace moegate::topk_sort
