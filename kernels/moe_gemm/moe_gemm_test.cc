// SPDX-License-Identifier: Apache-2.0
// The truth against answers worked out by hand, the sample that stands for a large output, and what
// the problems are made of.
#include "kernels/moe_gemm/moe_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm {
namespace {

/// Two rows and two columns of 256, zero but for the elements set.
ExpertProduct small_product() {
  ExpertProduct p{.k = 256, .dtype = DType::e4m3};
  p.x.assign(512, 0);
  p.weights.assign(512, 0);
  const auto set = [](std::vector<uint8_t>& codes, size_t at, float value) {
    codes[at] = float_to_e4m3(value);
  };
  set(p.x, 0, 2);
  set(p.x, 127, -1);
  set(p.x, 128, 3);
  set(p.x, 256 + 128, 0.5f);
  set(p.weights, 0, 1.5f);
  set(p.weights, 127, 4);
  set(p.weights, 128, -1);
  set(p.weights, 256 + 128, 8);
  p.x_scales = {1, 0.5f, 3, 2};
  p.weight_scales = {0.25f, 2, 7, 1};
  return p;
}

// Row 0, column 0: (2 * 1.5 - 1 * 4) * 1 * 0.25 + (3 * -1) * 0.5 * 2; column 1: 3 * 8 * 0.5 * 1.
// Row 1: 0.5 * -1 * 2 * 2 and 0.5 * 8 * 2 * 1.
TEST(MoeGemmTruth, IsTheProductByHand) {
  EXPECT_EQ(expert_truth(small_product()), (std::vector<double>{-3.25, 12, -2, 8}));
}

TEST(MoeGemmTruth, RoutingWeightsMultiplyRows) {
  ExpertProduct p = small_product();
  p.routing_weights = {2, -0.5f};
  EXPECT_EQ(expert_truth(p), (std::vector<double>{-6.5, 24, 1, -4}));
}

TEST(MoeGemmTruth, ABiasIsAddedBeforeTheRoutingWeight) {
  ExpertProduct p = small_product();
  p.routing_weights = {2, -0.5f};
  p.bias = {1, -2, 1, -2};
  EXPECT_EQ(expert_truth(p), (std::vector<double>{-4.5, 20, 0.5, -3}));
}

TEST(MoeGemmTruth, Bf16HasNoScalesAndAnyK) {
  ExpertProduct p{.k = 3, .dtype = DType::bf16};
  const auto bytes = [](const std::vector<float>& values) {
    std::vector<uint8_t> raw(2 * values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      write_float(DType::bf16, raw.data(), static_cast<int64_t>(i), values[i]);
    }
    return raw;
  };
  p.x = bytes({1, 2, 3});
  p.weights = bytes({1, 0, -1, 0.5f, 0.25f, 2});
  EXPECT_EQ(expert_truth(p), (std::vector<double>{-2, 7}));
}

// The second sum is odd and above 2^24: fp32 would round it.
TEST(MoeGemmTruth, Int8IsSignedAndExact) {
  ExpertProduct p{.k = 1200, .dtype = DType::i8};
  p.x.assign(1200, 127);
  p.weights.assign(2400, 127);
  std::fill_n(p.weights.begin() + 1200, 1200, static_cast<uint8_t>(-127));
  p.x[5] = static_cast<uint8_t>(-1);
  p.weights[5] = 1;
  p.weights[1205] = 0;
  EXPECT_EQ(expert_truth(p), (std::vector<double>{19338670, -19338671}));
}

MoeGemmShape large_shape() {
  return {.tokens = 64,
          .experts = 96,
          .topk = 4,
          .k = 128,
          .n = 1000,
          .block = 16,
          .down = false,
          .dtype = DType::e4m3};
}

TEST(MoeGemmSample, HoldsFirstAndLastAndARowOfManyExperts) {
  const MoeGemmShape shape = large_shape();
  std::vector<int32_t> experts;
  for (int r = 0; r < shape.rows(); ++r) experts.push_back(r * 7 % 96);
  const MoeGemmSample sample = moe_gemm_sample(shape, experts, 1, 0);
  EXPECT_EQ(sample.rows.front(), 0);
  EXPECT_EQ(sample.rows.back(), shape.rows() - 1);
  EXPECT_LE(sample.rows.size(), 130u);
  std::set<int32_t> covered;
  for (const int32_t r : sample.rows) covered.insert(experts[static_cast<size_t>(r)]);
  EXPECT_GE(covered.size(), 64u);
  EXPECT_EQ(sample.columns.front(), 0);
  EXPECT_EQ(sample.columns.back(), 999);
  EXPECT_GE(sample.columns.size(), 150u);
  EXPECT_LE(sample.columns.size(), 256u);
  EXPECT_TRUE(std::is_sorted(sample.rows.begin(), sample.rows.end()));
  EXPECT_TRUE(std::is_sorted(sample.columns.begin(), sample.columns.end()));
  EXPECT_NE(moe_gemm_sample(shape, experts, 2, 0).rows, sample.rows);
}

TEST(MoeGemmSample, IsEverythingWhereTheProductIsSmall) {
  const MoeGemmShape shape = large_shape();
  const std::vector<int32_t> experts(256, 5);
  const double products = 256.0 * 1000 * 128;
  const MoeGemmSample all = moe_gemm_sample(shape, experts, 1, products);
  EXPECT_EQ(all.rows.size(), 256u);
  EXPECT_EQ(all.columns.size(), 1000u);
  EXPECT_LT(moe_gemm_sample(shape, experts, 1, products - 1).rows.size(), 4u) << "one expert";
}

template <class P>
class MoeGemmProblem : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};
using Operators = ::testing::Types<MoeGateUp, MoeDown>;
TYPED_TEST_SUITE(MoeGemmProblem, Operators);

TYPED_TEST(MoeGemmProblem, ASampleRejectsWhatTheWholeTruthRejects) {
  const Case c = moe_gemm_case<TypeParam>(
      {{"tokens", "40"}, {"hidden", "512"}, {"inter", "512"}, {"routing", "zipf:0.67"}});
  TypeParam problem(*this->device_, c, /*most_products=*/0);
  check::launch_host_variant(problem, c, "gather");
  const auto accuracy = [&] { return problem.check().accuracy[0]; };
  ASSERT_TRUE(accuracy().ok) << accuracy().why;
  EXPECT_EQ(accuracy().output, "out (sample)");
  EXPECT_LT(accuracy().elements, int64_t{120} * problem.shape.n);
  const Corruptions corruptions = problem.corruptions();
  for (const Corruption* corruption :
       {&corruptions.experts_swapped, &corruptions.token_dropped, &corruptions.scales_transposed}) {
    check::launch_host_variant(problem, c, "gather");
    corruption->apply();
    EXPECT_FALSE(accuracy().ok);
  }
}

// Two tokens have a neighbour each; gates and ups have columns of their own.
TYPED_TEST(MoeGemmProblem, MisreadFactorsAreRejected) {
  for (const Params& format : kScaledOnce) {
    Params params = format;
    params["tokens"] = "2";
    const Case c = moe_gemm_case<TypeParam>(params);
    TypeParam problem(*this->device_, c);
    const auto is_right = [&](Slip slip) {
      check::launch_host_variant(problem, c, "gather");
      problem.slip(slip);
      return problem.check().accuracy[0].ok;
    };
    std::vector<Slip> slips = {Slip::of_expert_0, Slip::forgotten};
    const bool by_channel = problem.shape.scaled_by == ScaledBy::channel;
    if (by_channel) slips.push_back(Slip::neighbours);
    if (!by_channel && !problem.shape.down) slips.push_back(Slip::gate_for_up);
    EXPECT_TRUE(is_right(Slip::none)) << c.key();
    for (const Slip slip : slips) EXPECT_FALSE(is_right(slip)) << c.key() << static_cast<int>(slip);
    problem.corruptions().scales_transposed.apply();
    EXPECT_FALSE(problem.check().accuracy[0].ok) << c.key();
  }
}

TYPED_TEST(MoeGemmProblem, AMisreadBiasIsRejected) {
  for (const Params& params : biased_formats()) {
    const Case c = moe_gemm_case<TypeParam>(params);
    TypeParam problem(*this->device_, c);
    const auto is_right = [&](Slip slip) {
      check::launch_host_variant(problem, c, "gather");
      problem.slip(slip);
      return problem.check().accuracy[0].ok;
    };
    const bool scaled = problem.shape.scaled(), weighted = problem.shape.down;
    EXPECT_TRUE(is_right(Slip::none)) << c.key();
    for (const Slip slip : {Slip::bias_dropped, Slip::bias_twice, Slip::of_expert_0})
      EXPECT_FALSE(is_right(slip)) << c.key() << " " << static_cast<int>(slip);
    EXPECT_NE(is_right(Slip::bias_scaled), scaled) << c.key();
    EXPECT_NE(is_right(Slip::bias_unweighted), weighted) << c.key();
  }
}

TYPED_TEST(MoeGemmProblem, OneExpertHasNoOthersFactors) {
  const Case c = moe_gemm_case<TypeParam>(
      {{"scaling", "channel"}, {"rank", "0/8"}, {"routing", "hot:1:1"}, {"topk", "1"}});
  TypeParam problem(*this->device_, c);
  check::launch_host_variant(problem, c, "gather");
  const uint64_t hash = problem.check().hash;
  problem.corruptions().scales_transposed.apply();
  EXPECT_EQ(problem.check().hash, hash);
}

TYPED_TEST(MoeGemmProblem, ASampleFindsAnyElementThatNobodyWrote) {
  const Case c = moe_gemm_case<TypeParam>({{"hidden", "512"}, {"inter", "512"}, {"experts", "4"}});
  TypeParam problem(*this->device_, c, /*most_products=*/0);
  check::launch_host_variant(problem, c, "gather");
  const uint64_t hash = problem.check().hash;
  uint16_t* out = problem.args().out;
  const auto size =
      static_cast<size_t>(problem.shape.rows()) * static_cast<size_t>(problem.shape.n);
  size_t missed = 0;
  for (size_t i = 0; i < size; i += 97) {
    const uint16_t right = out[i];
    out[i] = 0xffff;
    const Checked checked = problem.check();
    missed += checked.accuracy[0].ok || checked.hash == hash;
    out[i] = right;
  }
  EXPECT_EQ(missed, 0u);
  EXPECT_TRUE(problem.check().accuracy[0].ok);
}

TYPED_TEST(MoeGemmProblem, OutputsHaveUnitSize) {
  for (Params params :
       std::vector<Params>{{}, {{"dtype", "bf16"}}, {{"dtype", "int8"}, {"scaling", "channel"}}}) {
    params["tokens"] = "32";
    const Case c = moe_gemm_case<TypeParam>(params);
    TypeParam problem(*this->device_, c);
    check::launch_host_variant(problem, c, "gather");
    double squares = 0;
    const int64_t size = int64_t{problem.shape.rows()} * problem.shape.n;
    for (int64_t i = 0; i < size; ++i) {
      const double value = bf16_to_float(problem.args().out[i]);
      squares += value * value;
    }
    const double expected = problem.shape.scaled_once() ? 1.2 : 1.05;  // factors vary more
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(size)), expected, 0.1) << c.key();
  }
}

TYPED_TEST(MoeGemmProblem, BlocksFollowTheTokenCount) {
  const auto block = [](const char* dtype, const char* tokens) {
    return TypeParam::shape_of(moe_gemm_case<TypeParam>({{"dtype", dtype}, {"tokens", tokens}}))
        .block;
  };
  EXPECT_EQ(block("fp8", "64"), 16);
  EXPECT_EQ(block("fp8", "65"), 64);
  EXPECT_EQ(block("bf16", "32"), 16);
  EXPECT_EQ(block("bf16", "96"), 32);
  EXPECT_EQ(block("bf16", "512"), 64);
  EXPECT_EQ(block("bf16", "513"), 128);
}

TYPED_TEST(MoeGemmProblem, ParametersThatDoNotFitAreNamed) {
  const auto message = [](const Params& params) {
    return test::refusal_of([&] { TypeParam::validate(moe_gemm_case<TypeParam>(params)); });
  };
  using ::testing::IsSubstring;
  const Params odd = {{"hidden", "200"}, {"inter", "200"}};
  EXPECT_EQ(message({}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "K = 200 is not a multiple of 128", message(odd));
  EXPECT_EQ(message({{"hidden", "200"}, {"inter", "200"}, {"dtype", "bf16"}}), "accepted");
  EXPECT_EQ(message({{"hidden", "208"}, {"inter", "208"}, {"scaling", "tensor"}}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "K = 200 is not a multiple of 16",
                      message({{"hidden", "200"}, {"inter", "200"}, {"scaling", "channel"}}));
  const Params int8 = {{"dtype", "int8"}};
  EXPECT_PRED_FORMAT2(IsSubstring, "int8 needs scaling = channel", message(int8));
  EXPECT_EQ(message({{"dtype", "int8"}, {"scaling", "tensor"}, {"bias", "1"}}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "scaling = tensor is for dtype = fp8 or int8",
                      message({{"dtype", "bf16"}, {"scaling", "tensor"}}));
  EXPECT_EQ(message({{"bias", "1"}, {"dtype", "bf16"}}), "accepted");
  EXPECT_EQ(message({{"bias", "1"}, {"scaling", "tensor"}}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "use channel or tensor, or bf16", message({{"bias", "1"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "block, channel, tensor", message({{"scaling", "row"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "dtype", message({{"dtype", "fp16"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "block", message({{"block", "257"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk", message({{"topk", "9"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "routing", message({{"routing", "zipf"}}));
}

TEST(MoeGemmArgs, FactorsAreOfTokensColumnsAndExperts) {
  const std::vector<float> scales(1 << 10);
  MoeGemmArgs args{.x_scales = scales.data(), .weight_scales = scales.data()};
  args.shape = {.tokens = 4, .experts = 3, .topk = 2, .k = 128, .n = 200, .dtype = DType::e4m3};
  const auto of_weights = [&](int expert, int column) {
    return args.weight_factor(expert, column) - scales.data();
  };
  const auto of_x = [&](int row) { return args.x_factor(row) - scales.data(); };
  args.shape.scaled_by = ScaledBy::channel;
  EXPECT_EQ(of_weights(2, 150), 550);
  EXPECT_EQ(of_x(7), 3);
  args.shape.scaled_by = ScaledBy::tensor;
  EXPECT_EQ(of_weights(2, 99), 4);
  EXPECT_EQ(of_weights(2, 100), 5);
  EXPECT_EQ(of_x(7), 0);
  args.shape.down = true;
  EXPECT_EQ(of_weights(2, 150), 2);
  args.shape.scaled_by = ScaledBy::channel;
  EXPECT_EQ(of_x(7), 7);
}

TEST(MoeGemm, CostIsTheOperatorsInSortedOrderToo) {
  const auto device = open_host_device();
  MoeGateUp problem(*device, moe_gemm_case<MoeGateUp>({{"tokens", "20"}}));
  const double read_bytes = problem.cost().read_bytes;
  problem.sort_activations();
  problem.sort_output();
  EXPECT_EQ(problem.cost().read_bytes, read_bytes);
  EXPECT_EQ(problem.cost().write_bytes, 20 * 3 * 256 * 2);
}

// One expert has all 20 rows, in blocks of 16.
TEST(MoeGemm, CostAndFactsCountWhatIsRead) {
  const auto device = open_host_device();
  const MoeDown problem(*device, moe_gemm_case<MoeDown>({{"tokens", "20"},
                                                         {"topk", "1"},
                                                         {"hidden", "200"},
                                                         {"inter", "256"},
                                                         {"routing", "hot:1:1"}}));
  const Cost cost = problem.cost();
  EXPECT_EQ(cost.flops, 2.0 * 20 * 200 * 256);
  EXPECT_EQ(cost.write_bytes, 20 * 200 * 2);
  const double weights = 200 * 256 + 2 * 2 * 4, x = 20 * (256 + 2 * 4), ids = 4 * (32 + 2);
  EXPECT_EQ(cost.read_bytes, weights + x + 20 * 4 + ids);
  std::map<std::string, double> facts;
  for (const Fact& fact : problem.facts()) facts[fact.name] = fact.value;
  EXPECT_EQ(facts, (std::map<std::string, double>{{"active_experts", 1},
                                                  {"max_over_mean", 8},
                                                  {"padded_rows", 32},
                                                  {"rows", 20},
                                                  {"tile_efficiency", 20.0 / 32}}));
}

TEST(MoeGemm, CostCountsABiasOfEveryExpertThatHasRows) {
  const auto device = open_host_device();
  const auto read = [&](const char* bias) {
    const Params params = {{"dtype", "bf16"}, {"bias", bias}};
    return MoeGateUp(*device, moe_gemm_case<MoeGateUp>(params)).cost().read_bytes;
  };
  const auto experts = MoeGateUp(*device, moe_gemm_case<MoeGateUp>({})).facts().front().value;
  EXPECT_EQ(read("1") - read("0"), experts * 256 * 2);
}

TEST(MoeGemm, CostCountsTheFactorsThatThereAre) {
  const auto device = open_host_device();
  const auto read = [&](const char* scaling) {
    return MoeGateUp(*device, moe_gemm_case<MoeGateUp>({{"scaling", scaling}})).cost().read_bytes;
  };
  const auto experts = MoeGateUp(*device, moe_gemm_case<MoeGateUp>({})).facts().front().value;
  // K = N = 256: of an expert 4 factors of blocks, 256 of channels, 2 of tensors; of a token 2, 1,
  // and one of all.
  EXPECT_EQ(read("channel") - read("block"), 4 * (experts * 252 - 7));
  EXPECT_EQ(read("tensor") - read("block"), 4 * (experts * -2 - 14 + 1));
}

}  // namespace
}  // namespace moegate::moe_gemm
