// SPDX-License-Identifier: Apache-2.0
// The truth against answers worked out by hand, the mistakes that check() must reject, and the host
// variants.
#include "kernels/w4_moe/w4_moe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/w4_moe/w4_moe_testing.h"

namespace moegate::w4_moe {
namespace {

/// One row and one column, K = 64, zero but for what is set.
W4Product small_product(int weight_rows) {
  W4Product p;
  const auto rows = static_cast<size_t>(weight_rows);
  p.x.assign(64, 0);
  p.codes.assign(32 * rows, 0);
  p.scales.assign(2 * rows, 127);
  p.bias.assign(rows, 0);
  return p;
}

W4Shape shape_of(int down) {
  W4Shape s{};
  s.k = 64;
  s.n = down ? 1 : 2;
  s.down = down;
  s.alpha = 1.702F, s.beta = 1, s.limit = 7;
  s.group = 32;
  return s;
}

TEST(W4Truth, IsTheProductByHand) {
  W4Product p = small_product(1);
  p.x[0] = 2, p.x[1] = 3, p.x[33] = -1;
  p.codes[0] = 0xd7;   // low nibble: 6, high: -3
  p.codes[16] = 0x10;  // high nibble: 0.5
  p.scales = {128, 125};
  p.bias = {0.25};
  p.routing_weights = {2};
  // (2 * 6 - 3 * 3) * 2 - 0.5 / 4 + 0.25, times 2
  EXPECT_EQ(w4_truth(shape_of(1), p), std::vector<double>{12.25});
}

TEST(W4Truth, OfInt4IsTheProductByHand) {
  W4Product p = small_product(1);
  p.x[0] = 2, p.x[1] = 3, p.x[33] = -1;
  p.codes.assign(32, 0x88);
  p.codes[0] = 0x0f;            // low nibble: 7, high: -8
  p.codes[16] = 0xa8;           // high nibble: 2
  p.scales = {0x3fc0, 0x3e80};  // 1.5, 0.25
  p.bias = {0.25};
  p.routing_weights = {2};
  W4Shape shape = shape_of(1);
  shape.weights = W4Weights::int4;
  // (2 * 7 - 3 * 8) * 1.5 - 2 / 4 + 0.25, times 2
  EXPECT_EQ(w4_truth(shape, p), std::vector<double>{-30.5});
  shape.group = 64;
  // (2 * 7 - 3 * 8 - 2) * 1.5 + 0.25, times 2
  EXPECT_EQ(w4_truth(shape, p), std::vector<double>{-35.5});
}

TEST(W4Truth, ClampsTheGateFromAboveAndTheUpOnBothSides) {
  W4Product p = small_product(2);
  const auto out = [&](double gate, double up) {
    p.bias = {gate, up};
    return w4_truth(shape_of(0), p)[0];
  };
  const auto by_hand = [](double g, double u) { return g / (1 + std::exp(-1.702F * g)) * (u + 1); };
  EXPECT_EQ(out(2, 3), by_hand(2, 3));
  EXPECT_EQ(out(9, 3), by_hand(7, 3));
  EXPECT_EQ(out(-9, 3), by_hand(-9, 3));
  EXPECT_EQ(out(2, 9), by_hand(2, 7));
  EXPECT_EQ(out(2, -9), by_hand(2, -7));
}

TEST(W4Truth, AScaleOf255IsNoNumberAndOneOf0IsSmall) {
  W4Product p = small_product(1);
  p.x[0] = 1;
  p.codes[0] = 0x02;  // 1
  p.routing_weights = {1};
  p.scales = {0, 127};
  EXPECT_EQ(w4_truth(shape_of(1), p)[0], std::ldexp(1.0, -127));
  p.scales = {255, 127};
  EXPECT_TRUE(std::isnan(w4_truth(shape_of(1), p)[0]));
}

template <class P>
class W4Problem : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};
using Operators = ::testing::Types<W4GateUp, W4Down>;
TYPED_TEST_SUITE(W4Problem, Operators);

// K of one group, of three (no whole unit of 64), of 23; ragged N; a block with more rows than an
// expert has, and less.
TYPED_TEST(W4Problem, HostVariantsAgreeWithTheTruth) {
  for (const Params& params : std::vector<Params>{{{"values", "edges"}},
                                                  {{"routing", "hot:1:1"}, {"block", "3"}},
                                                  {{"tokens", "1"}, {"values", "edges"}},
                                                  {{"tokens", "40"}, {"routing", "zipf:1.2"}}}) {
    for (const int k : {32, 96, 736}) {
      check::expect_host_variants_right(*this->device_, product_case<TypeParam>(params, k, 70));
    }
  }
}

// Every size of a group, one of them and several, with and without a bias.
TYPED_TEST(W4Problem, HostVariantsAgreeWithTheTruthOfInt4) {
  for (const int group : {32, 64, 128}) {
    for (const int groups : {1, 3}) {
      for (const char* bias : {"0", "1"}) {
        const Params params = {{"weights", "int4"},
                               {"group", std::to_string(group)},
                               {"bias", bias},
                               {"values", groups == 1 ? "random" : "edges"}};
        check::expect_host_variants_right(*this->device_,
                                          product_case<TypeParam>(params, group * groups, 70));
      }
    }
  }
}

constexpr W4Slip kOfGateUp[] = {W4Slip::alpha_one, W4Slip::no_clamp, W4Slip::no_beta,
                                W4Slip::gate_and_up_swapped};
constexpr W4Slip kOfInt4[] = {W4Slip::no_offset, W4Slip::offset_7, W4Slip::twos_complement};

// Of int4 under the limits of rounded weights, which are wider than the others.
TYPED_TEST(W4Problem, MistakesAreRejected) {
  for (const Params& weights :
       std::vector<Params>{{}, {{"weights", "int4"}}, {{"weights", "int4"}, {"group", "128"}}}) {
    Params params = {{"tokens", "40"}, {"hidden", "768"}, {"inter", "768"}};
    params.insert(weights.begin(), weights.end());
    const Case c = w4_case<TypeParam>(params);
    TypeParam problem(*this->device_, c);
    problem.args(W4Scaling::in_bf16);
    const auto is_right = [&](W4Slip slip) {
      problem.slip(slip);
      return problem.check().accuracy[0].ok;
    };
    std::vector<W4Slip> slips = {W4Slip::scales_transposed,   W4Slip::scales_late,
                                 W4Slip::scales_of_next_size, W4Slip::scales_of_expert_0,
                                 W4Slip::nibbles_swapped,     W4Slip::halves,
                                 W4Slip::last_group_doubled,  W4Slip::bias_dropped,
                                 W4Slip::bias_twice,          W4Slip::bias_behind_clamp};
    if (!problem.shape.down) slips.insert(slips.end(), std::begin(kOfGateUp), std::end(kOfGateUp));
    if (!weights.empty()) slips.insert(slips.end(), std::begin(kOfInt4), std::end(kOfInt4));
    EXPECT_TRUE(is_right(W4Slip::none)) << c.key();
    for (const W4Slip slip : slips) {
      EXPECT_FALSE(is_right(slip)) << c.key() << " " << static_cast<int>(slip);
    }
  }
}

TYPED_TEST(W4Problem, WeightsMayBeRoundedWhereAVariantSaysSo) {
  for (const Params& params : std::vector<Params>{{{"bias", "0"}},
                                                  {{"group", "128"}, {"routing", "zipf:1.2"}},
                                                  {{"group", "64"}, {"values", "edges"}}}) {
    Params int4 = {{"weights", "int4"}, {"tokens", "40"}};
    int4.insert(params.begin(), params.end());
    const Case c = product_case<TypeParam>(int4, 768, 256);
    TypeParam problem(*this->device_, c);
    problem.slip(W4Slip::rounded_weights);
    EXPECT_NE(problem.check().accuracy[0].beyond(), "") << c.key();
    problem.args(W4Scaling::in_bf16);
    const Accuracy rounded = problem.check().accuracy[0];
    EXPECT_TRUE(rounded.ok) << c.key() << ": " << rounded.why;
    EXPECT_EQ(rounded.beyond(), "") << c.key();
    problem.lay_out("");
    EXPECT_NE(problem.check().accuracy[0].beyond(), "") << c.key();
  }
}

TYPED_TEST(W4Problem, ASampleRejectsWhatTheWholeTruthRejects) {
  const Case c = w4_case<TypeParam>({{"tokens", "40"}, {"routing", "zipf:0.67"}});
  TypeParam problem(*this->device_, c, /*most_products=*/0);
  check::launch_host_variant(problem, c, "gather");
  EXPECT_TRUE(problem.check().accuracy[0].ok) << problem.check().accuracy[0].why;
  EXPECT_EQ(problem.sampled_outputs().size(), 1u);
  problem.corruptions().experts_swapped.apply();
  EXPECT_FALSE(problem.check().accuracy[0].ok);
}

TEST(W4Cases, AreRefusedWithTheReason) {
  const auto why = [](const Params& params) {
    return test::refusal_of([&] { W4GateUp::validate(w4_case<W4GateUp>(params)); }, Exit::usage);
  };
  EXPECT_NE(why({{"hidden", "80"}}).find("hidden = 80 is not a multiple of 32"), std::string::npos);
  EXPECT_NE(why({{"topk", "9"}}).find("topk"), std::string::npos);
  EXPECT_NE(why({{"values", "odd"}}).find("edges"), std::string::npos);
  EXPECT_NE(why({{"weights", "int8"}}).find("mxfp4, int4"), std::string::npos);
  EXPECT_NE(why({{"group", "64"}}).find("mxfp4 have groups of 32"), std::string::npos);
  EXPECT_NE(why({{"bias", "0"}}).find("is for weights = int4"), std::string::npos);
  const Params int4 = {{"weights", "int4"}, {"group", "128"}, {"hidden", "192"}};
  EXPECT_NE(why(int4).find("hidden = 192 is not a multiple of 128"), std::string::npos);
}

}  // namespace
}  // namespace moegate::w4_moe
