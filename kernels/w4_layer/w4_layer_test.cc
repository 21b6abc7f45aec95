// SPDX-License-Identifier: Apache-2.0
// The truth of the layer against its definition on small numbers, what check() rejects, and the
// host variants against the truth.
#include "kernels/w4_layer/w4_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/w4_layer/w4_layer_testing.h"

namespace moegate::w4_layer {
namespace {

using w4_moe::W4Slip;

class W4LayerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};

/// The layer's definition without any of its roundings, straight from the operands.
std::vector<double> layer_without_roundings(const Steps& s) {
  constexpr double kCodes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  const auto sum = [&](const W4Args& args, int e, int n, const auto& x) {
    const int64_t row = int64_t{e} * args.shape.n + n;
    const auto* scales = static_cast<const uint8_t*>(args.scales) + row * args.shape.groups();
    double all = bf16_to_float(args.bias[row]);
    for (int k = 0; k < args.shape.k; ++k) {
      const uint8_t both = args.codes[(row * args.shape.k + k) / 2];
      all +=
          kCodes[k % 2 == 0 ? both & 15 : both >> 4] * std::ldexp(1.0, scales[k / 32] - 127) * x(k);
    }
    return all;
  };
  const W4Shape& up = s.gate_up.shape;
  const int hidden = s.down.shape.n;
  std::vector<double> out(static_cast<size_t>(up.tokens * hidden));
  for (int r = 0; r < up.rows(); ++r) {
    const int t = r / up.topk, e = s.align.topk_ids[r];
    const auto x = [&](int k) { return double{bf16_to_float(s.gate_up.x[t * up.k + k])}; };
    std::vector<double> a;
    for (int i = 0; i < s.down.shape.k; ++i) {
      const double gate = std::min<double>(sum(s.gate_up, e, 2 * i, x), up.limit);
      const double linear =
          std::clamp<double>(sum(s.gate_up, e, 2 * i + 1, x), -up.limit, up.limit);
      a.push_back(gate / (1 + std::exp(-up.alpha * gate)) * (linear + up.beta));
    }
    for (int n = 0; n < hidden; ++n) {
      out[static_cast<size_t>(t * hidden + n)] +=
          s.down.routing_weights[r] *
          sum(s.down, e, n, [&](int k) { return a[static_cast<size_t>(k)]; });
    }
  }
  return out;
}

TEST_F(W4LayerTest, TheTruthIsTheLayerUpToItsRoundings) {
  for (const Params& params :
       std::vector<Params>{{}, {{"alpha", "1"}, {"limit", "0"}, {"beta", "0"}}}) {
    const Case c = w4_layer_case(params);
    W4Layer problem(*device_, c);
    problem.reserve_workspace(W4Layer::workspace_bytes(problem.shape));
    const Steps steps = problem.steps();
    const auto expected = layer_without_roundings(steps);
    for (size_t i = 0; i < expected.size(); ++i)
      steps.sum.out[i] = float_to_bf16(static_cast<float>(expected[i]));
    const Accuracy a = problem.check().accuracy[0];
    EXPECT_TRUE(a.ok) << a.why;
    EXPECT_GT(a.rel_l2, 1e-3) << "the layer rounds";
  }
}

TEST_F(W4LayerTest, HostVariantsAgreeWithTheTruth) {
  for (const Params& params :
       std::vector<Params>{{},
                           {{"tokens", "1"}, {"hidden", "736"}},
                           {{"routing", "hot:1:1"}, {"block", "3"}},
                           {{"tokens", "40"}, {"routing", "zipf:1.2"}},
                           {{"weights", "int4"}, {"group", "64"}, {"inter", "64"}},
                           {{"weights", "int4"}, {"bias", "0"}}}) {
    check::expect_host_variants_right(*device_, w4_layer_case(params));
  }
}

TEST_F(W4LayerTest, MistakesInBothProductsAreRejected) {
  constexpr W4Slip kSlips[] = {W4Slip::scales_transposed,
                               W4Slip::scales_late,
                               W4Slip::scales_of_next_size,
                               W4Slip::scales_of_expert_0,
                               W4Slip::nibbles_swapped,
                               W4Slip::halves,
                               W4Slip::last_group_doubled,
                               W4Slip::bias_dropped,
                               W4Slip::bias_twice,
                               W4Slip::bias_behind_clamp,
                               W4Slip::alpha_one,
                               W4Slip::no_clamp,
                               W4Slip::no_beta,
                               W4Slip::gate_and_up_swapped};
  for (const Params& weights : std::vector<Params>{{}, {{"weights", "int4"}}}) {
    Params params = {{"tokens", "20"}, {"hidden", "384"}, {"inter", "384"}};
    params.insert(weights.begin(), weights.end());
    W4Layer problem(*device_, w4_layer_case(params));
    problem.reserve_workspace(W4Layer::workspace_bytes(problem.shape));
    problem.steps(W4Scaling::in_bf16);
    for (const W4Slip slip : kSlips) {
      problem.slip(W4Slip::none);
      problem.slip(slip);
      EXPECT_FALSE(problem.check().accuracy[0].ok)
          << params.size() << " " << static_cast<int>(slip);
    }
  }
}

TEST_F(W4LayerTest, Int4WeightsMayBeRoundedWhereAVariantSaysSo) {
  const Case c = w4_layer_case(
      {{"weights", "int4"}, {"tokens", "40"}, {"hidden", "768"}, {"inter", "768"}, {"bias", "0"}});
  W4Layer problem(*device_, c);
  problem.reserve_workspace(W4Layer::workspace_bytes(problem.shape));
  const auto launch_rounded = [&](W4Scaling scaling) {
    check::launch_host_variant(problem, c, "gather");
    problem.slip(W4Slip::rounded_weights);
    problem.steps(scaling);
    return problem.check().accuracy[0];
  };
  EXPECT_NE(launch_rounded(W4Scaling::exact).beyond(), "");
  const Accuracy rounded = launch_rounded(W4Scaling::in_bf16);
  EXPECT_TRUE(rounded.ok) << rounded.why;
  EXPECT_EQ(rounded.beyond(), "") << rounded.rel_l2;
}

TEST_F(W4LayerTest, ASampleRejectsWhatTheWholeTruthRejects) {
  const Case c = w4_layer_case({{"tokens", "40"}, {"routing", "zipf:0.67"}});
  W4Layer problem(*device_, c, /*most_products=*/0);
  problem.reserve_workspace(size_t{1} << 24);
  check::launch_host_variant(problem, c, "gather");
  EXPECT_TRUE(problem.check().accuracy[0].ok) << problem.check().accuracy[0].why;
  problem.corruptions().experts_swapped.apply();
  EXPECT_FALSE(problem.check().accuracy[0].ok);
}

TEST(W4LayerCases, AreRefusedWithTheReason) {
  const auto why = [](const Params& params) {
    return test::refusal_of([&] { W4Layer::validate(w4_layer_case(params)); }, Exit::usage);
  };
  EXPECT_NE(why({{"inter", "80"}}).find("inter = 80 is not a multiple of 32"), std::string::npos);
  EXPECT_NE(why({{"bias", "0"}}).find("is for weights = int4"), std::string::npos);
}

}  // namespace
}  // namespace moegate::w4_layer
