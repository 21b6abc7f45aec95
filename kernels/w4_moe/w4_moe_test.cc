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
      const Case c = product_case<TypeParam>(params, k, 70);
      Bench bench(*this->device_, c);
      for (const Variant& v : all_variants()) {
        if (v.op != c.op || v.backend != Backend::host) continue;
        Result result = bench.verify(v);
        if (result.status == Status::ok) bench.check_unseen(v, result);
        EXPECT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
      }
    }
  }
}

TYPED_TEST(W4Problem, MistakesAreRejected) {
  const Case c = w4_case<TypeParam>({{"tokens", "40"}, {"hidden", "736"}, {"inter", "736"}});
  TypeParam problem(*this->device_, c);
  const auto is_right = [&](W4Slip slip) {
    problem.slip(slip);
    return problem.check().accuracy[0].ok;
  };
  EXPECT_TRUE(is_right(W4Slip::none));
  for (const W4Slip slip : {W4Slip::scales_transposed, W4Slip::scales_late, W4Slip::nibbles_swapped,
                            W4Slip::halves, W4Slip::last_group_doubled, W4Slip::bias_dropped,
                            W4Slip::bias_twice, W4Slip::bias_behind_clamp}) {
    EXPECT_FALSE(is_right(slip)) << static_cast<int>(slip);
  }
  if (problem.shape.down) return;
  for (const W4Slip slip :
       {W4Slip::alpha_one, W4Slip::no_clamp, W4Slip::no_beta, W4Slip::gate_and_up_swapped}) {
    EXPECT_FALSE(is_right(slip)) << static_cast<int>(slip);
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
}

}  // namespace
}  // namespace moegate::w4_moe
