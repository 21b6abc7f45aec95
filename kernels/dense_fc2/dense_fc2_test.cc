// SPDX-License-Identifier: Apache-2.0
// The truth of dense_fc2 against its definition on small numbers, what alpha is made of, what
// check() takes and rejects, whole and sampled.
#include "kernels/dense_fc2/dense_fc2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/dense_fc2/dense_fc2_testing.h"

namespace moegate::dense_fc2 {
namespace {

Accuracy accuracy(const DenseFc2& problem) {
  return problem.check().accuracy[0];
}

/// The definition in dense_fc2.h, all of K and all experts, straight from the operands.
std::vector<double> defined(const DenseFc2Args& args) {
  const DenseFc2Shape& s = args.shape;
  const auto factor = [&](const float* scales, int64_t row, int k) {
    return double{scales[s.block_scales ? row * s.k_groups() + k / kMoeGroup : 0]};
  };
  std::vector<double> out;
  for (int64_t m = 0; m < s.tokens; ++m) {
    for (int64_t n = 0; n < s.hidden; ++n) {
      double sum = 0;
      for (int k = 0; k < s.k(); ++k) {
        sum += double{args.alpha[m * s.experts + k / s.inter]} *
               e4m3_to_float(args.a[m * s.k() + k]) * factor(args.a_scales, m, k) *
               e4m3_to_float(args.b[n * s.k() + k]) * factor(args.b_scales, n / kMoeGroup, k);
      }
      out.push_back(sum);
    }
  }
  return out;
}

void upload_rounded(DenseFc2& problem, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    problem.args().out[i] = float_to_bf16(static_cast<float>(values[i]));
  }
}

TEST(DenseFc2, TheTruthIsTheDefinition) {
  const auto device = open_host_device();
  for (const char* scales : {"tensor", "block"}) {
    for (const char* alphas : {"routed", "edges"}) {
      DenseFc2 problem(*device, dense_fc2_case({{"scales", scales}, {"alphas", alphas}}));
      const auto values = defined(problem.args());
      upload_rounded(problem, values);
      const Accuracy a = accuracy(problem);
      EXPECT_TRUE(a.ok) << a.why;
      EXPECT_EQ(a.elements, 7 * 136);
      EXPECT_LT(a.rel_l2, 2e-3) << "the output's rounding alone";
    }
  }
}

TEST(DenseFc2, OutputsHaveUnitSize) {
  const auto device = open_host_device();
  for (const char* scales : {"tensor", "block"}) {
    DenseFc2 problem(*device, dense_fc2_case({{"tokens", "32"}, {"scales", scales}}));
    double squares = 0;
    const auto values = defined(problem.args());
    for (const double value : values) squares += value * value;
    // One scale factor for all is off by up to a quarter, of either operand.
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 1.05, 0.5) << scales;
  }
}

DenseFc2Shape small_shape(bool edges) {
  DenseFc2Shape s{};
  s.tokens = 6;
  s.experts = 5;
  s.topk = 2;
  s.edges = edges;
  return s;
}

const std::vector<int32_t> kSlots = {4, 0, 1, 2, 3, 1, 0, 3, 2, 4, 0, 1};

/// Experts whose alpha is not 0 for token t.
std::vector<int> used(const std::vector<float>& alpha, int t) {
  std::vector<int> experts;
  for (int e = 0; e < 5; ++e) {
    if (alpha[static_cast<size_t>(5 * t + e)] != 0) experts.push_back(e);
  }
  return experts;
}

TEST(DenseFc2Alpha, IsARoutingWeightWhereASlotNamesTheExpert) {
  const auto alpha = dense_fc2_alpha(small_shape(false), kSlots, 1);
  ASSERT_EQ(alpha.size(), 30u);
  EXPECT_EQ(used(alpha, 0), (std::vector<int>{0, 4}));
  EXPECT_EQ(used(alpha, 1), (std::vector<int>{1, 2}));
  EXPECT_EQ(used(alpha, 5), (std::vector<int>{0, 1}));
  for (const float x : alpha) {
    EXPECT_TRUE(x == 0 || (x > 0.35f && x < 1.07f)) << x;  // 0.5 to 1.5 over the root of k
  }
}

TEST(DenseFc2Alpha, AtTheEdgesSlotsAddUpOrCountForNothing) {
  const auto plain = dense_fc2_alpha(small_shape(false), kSlots, 1);
  const auto alpha = dense_fc2_alpha(small_shape(true), kSlots, 1);
  EXPECT_EQ(used(alpha, 0), (std::vector<int>{4}));
  EXPECT_EQ(alpha[4], plain[4] + plain[0]) << "both of its slots";
  EXPECT_EQ(used(alpha, 1), (std::vector<int>{}));
  EXPECT_EQ(used(alpha, 3), (std::vector<int>{0, 3}));
  EXPECT_EQ(used(alpha, 4), (std::vector<int>{2}));
  EXPECT_EQ(used(alpha, 5), (std::vector<int>{}));
}

TEST(DenseFc2, TheWholeAndASampleRejectFaults) {
  const auto device = open_host_device();
  const Case c = dense_fc2_case({{"tokens", "90"}, {"hidden", "600"}, {"scales", "block"}});
  for (const double most : {DenseFc2::kWholeTruth, 0.0}) {
    DenseFc2 problem(*device, c, most);
    check::launch_host_variant(problem, c, "alpha_per_expert");
    ASSERT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
    EXPECT_EQ(accuracy(problem).output, most > 0 ? "out" : "out (sample)");
    const Corruptions corruptions = problem.corruptions();
    for (const Corruption* corruption : {&corruptions.experts_swapped, &corruptions.token_dropped,
                                         &corruptions.scales_transposed}) {
      check::launch_host_variant(problem, c, "alpha_per_expert");
      corruption->apply();
      EXPECT_FALSE(accuracy(problem).ok);
    }
    check::launch_host_variant(problem, c, "alpha_per_expert");
    problem.args().out[47 * 600 + 301] = 0x7f80;
    EXPECT_FALSE(accuracy(problem).ok);
  }
}

TEST(DenseFc2, AFaultThatChangesNothingLeavesTheOutput) {
  const auto device = open_host_device();
  const Case c = dense_fc2_case({{"experts", "1"}, {"topk", "1"}});
  DenseFc2 problem(*device, c);
  check::launch_host_variant(problem, c, "alpha_per_expert");
  const uint64_t hash = problem.check().hash;
  problem.corruptions().experts_swapped.apply();
  EXPECT_EQ(problem.check().hash, hash);
  EXPECT_FALSE(problem.corruptions().scales_transposed.apply) << "one scale factor each";
  problem.corruptions().token_dropped.apply();
  EXPECT_NE(problem.check().hash, hash);
}

// Far below what the tolerance of a row would notice.
TEST(DenseFc2, ARowWithoutAlphasIsZeroToTheBit) {
  const auto device = open_host_device();
  const Case c = dense_fc2_case({{"alphas", "edges"}});
  for (const double most : {DenseFc2::kWholeTruth, 0.0}) {
    DenseFc2 problem(*device, c, most);
    check::launch_host_variant(problem, c, "alpha_per_expert");
    ASSERT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
    uint16_t& element = problem.args().out[5 * 136 + 77];
    EXPECT_EQ(element & 0x7fff, 0);
    element = 0x8000;
    EXPECT_TRUE(accuracy(problem).ok) << "minus zero";
    element = float_to_bf16(1e-30f);
    EXPECT_FALSE(accuracy(problem).ok);
    EXPECT_NE(accuracy(problem).why.find("every alpha of row 5 is 0"), std::string::npos);
  }
}

/// 20 tokens, all on one of 8 experts; `edges` leaves 5 of them without any.
Case one_expert_case(const std::string& scales, const std::string& alphas) {
  return dense_fc2_case({{"tokens", "20"},
                         {"topk", "1"},
                         {"hidden", "200"},
                         {"routing", "hot:1:1"},
                         {"scales", scales},
                         {"alphas", alphas}});
}

TEST(DenseFc2, CostIsOfWhatIsUseful) {
  const auto device = open_host_device();
  const double alpha = 20 * 8 * 4, b = 200 * 256;
  const Cost block = DenseFc2(*device, one_expert_case("block", "routed")).cost();
  EXPECT_EQ(block.flops, 2.0 * 20 * 200 * 256);
  EXPECT_EQ(block.read_bytes, 20 * (256 + 2 * 4) + b + 2 * 2 * 4 + alpha);
  EXPECT_EQ(block.write_bytes, 20 * 200 * 2);
  const Cost tensor = DenseFc2(*device, one_expert_case("tensor", "edges")).cost();
  EXPECT_EQ(tensor.flops, 2.0 * 15 * 200 * 256);
  EXPECT_EQ(tensor.read_bytes, 15 * 256 + b + 4 + 4 + alpha);
  EXPECT_EQ(tensor.write_bytes, 20 * 200 * 2);
}

TEST(DenseFc2, FactsSayWhatIsUseful) {
  const auto device = open_host_device();
  const DenseFc2 problem(*device, one_expert_case("block", "routed"));
  std::map<std::string, double> facts;
  for (const Fact& fact : problem.facts()) facts[fact.name] = fact.value;
  EXPECT_EQ(facts,
            (std::map<std::string, double>{{"active_experts", 1}, {"useful_share", 1.0 / 8}}));
}

TEST(DenseFc2, ParametersThatDoNotFitAreNamed) {
  const auto message = [](const Params& params) {
    return test::refusal_of([&] { DenseFc2::validate(dense_fc2_case(params)); });
  };
  using ::testing::IsSubstring;
  EXPECT_EQ(message({}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "inter = 200 is not a multiple of k_tile = 128",
                      message({{"inter", "200"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "inter = 384 is not a multiple of k_tile = 256",
                      message({{"inter", "384"}, {"k_tile", "256"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "scales", message({{"scales", "row"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "alphas", message({{"alphas", "zero"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk", message({{"topk", "9"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "routing", message({{"routing", "zipf"}}));
}

}  // namespace
}  // namespace moegate::dense_fc2
