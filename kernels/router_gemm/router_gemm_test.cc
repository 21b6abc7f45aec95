// SPDX-License-Identifier: Apache-2.0
// The truth against an answer worked out by hand, the mistakes that check() must reject, tokens
// whose experts change, and the host variants.
#include "kernels/router_gemm/router_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/router_gemm/router_gemm_testing.h"

namespace moegate::router_gemm {
namespace {

RouterGemmShape shape_of(int experts, int topk, DType out) {
  RouterGemmShape s{};
  s.experts = experts;
  s.topk = topk;
  s.hidden = 2;
  s.weights = DType::bf16;
  s.out = out;
  return s;
}

TEST(RouterGemmTruth, IsTheProductAndTheBias) {
  RouterOperands operands{{1, 2, -3, 0.5}, {4, 1, 0, -1, 2, 2}, {}};
  const RouterGemmShape shape = shape_of(3, 1, DType::f32);
  EXPECT_EQ(router_gemm_truth(shape, operands), (std::vector<double>{6, -2, 6, -11.5, -0.5, -5}));
  operands.bias = {0.25, 0, -1};
  EXPECT_EQ(router_gemm_truth(shape, operands),
            (std::vector<double>{6.25, -2, 5, -11.25, -0.5, -6}));
}

// Two tokens, two of four experts each: 1 and 3.
TEST(RouterGemmFlips, AreOtherExpertsThoughTheGapIsWide) {
  constexpr double kRelL2 = 1e-5;
  const RouterGemmShape shape = shape_of(4, 2, DType::f32);
  const std::vector<double> truth = {0, 2, 1, 3, 0, 2, 1.99, 3};
  const auto flipped = [&](const std::vector<float>& logits) {
    return flipped_rows(shape, logits, truth, kRelL2);
  };
  EXPECT_TRUE(flipped({0, 2, 1, 3, 0, 2, 1.99F, 3}).empty());
  EXPECT_TRUE(flipped({0, 3, 1, 2, 0, 9, 1.99F, 8}).empty()) << "the same two in another order";
  EXPECT_EQ(flipped({0, 2, 2.5F, 3, 0, 2, 1.99F, 3}), std::vector<int64_t>{0});
  EXPECT_EQ(flipped({0, 2, 1, 3, 0, 1.98F, 1.99F, 3}), std::vector<int64_t>{1});
  EXPECT_EQ(flipped({4, 2, 1, 3, 3, 0, 0, 0}), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(flipped({NAN, 2, 2.5F, 3, 0, 2, 1, 3}).empty()) << "what is not finite is no flip";
}

TEST(RouterGemmFlips, AreForgivenWithinFourUlpsOfTheOutput) {
  const std::vector<double> truth = {0, 1.99, 2, 3};
  const std::vector<float> swapped = {0, 2, 1.99F, 3};
  const auto count = [&](DType out, double rel_l2) {
    return flipped_rows(shape_of(4, 2, out), swapped, truth, rel_l2).size();
  };
  EXPECT_EQ(count(DType::f32, 1e-5), 1u);
  EXPECT_EQ(count(DType::bf16, 1e-5), 0u) << "4 ulp are 1/16";
  EXPECT_EQ(count(DType::f32, 1e-3), 0u) << "six times the error that a row may have";
}

class RouterGemmProblem : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};

// The tail of 64 is a half of the last 128 (2880 has one), or all but a piece of 8.
TEST_F(RouterGemmProblem, MistakesAreRejected) {
  const std::vector<RouterSlip> both = {RouterSlip::experts_swapped, RouterSlip::tokens_swapped,
                                        RouterSlip::token_dropped,   RouterSlip::bias_dropped,
                                        RouterSlip::bias_twice,      RouterSlip::k_tail_missing};
  for (const char* hidden : {"2880", "2888"}) {
    for (const char* out : {"fp32", "bf16"}) {
      RouterGemm problem(
          *device_,
          router_gemm_case({{"hidden", hidden}, {"out", out}, {"bias", "1"}, {"weights", "fp32"}}));
      const auto is_right = [&](RouterSlip slip) {
        problem.slip(slip);
        return problem.check().accuracy[0].ok;
      };
      EXPECT_TRUE(is_right(RouterSlip::none));
      for (const RouterSlip slip : both) {
        EXPECT_FALSE(is_right(slip)) << hidden << " " << out << " " << static_cast<int>(slip);
      }
      if (problem.shape.out == DType::bf16) continue;
      EXPECT_FALSE(is_right(RouterSlip::weights_in_bf16));
      EXPECT_FALSE(is_right(RouterSlip::logits_in_bf16));
    }
  }
}

TEST_F(RouterGemmProblem, OtherExpertsAreCounted) {
  RouterGemm problem(*device_, router_gemm_case({{"tokens", "40"}}));
  problem.slip(RouterSlip::none);
  EXPECT_TRUE(problem.check().accuracy[1].ok);
  problem.slip(RouterSlip::experts_swapped);
  const Accuracy flips = problem.check().accuracy[1];
  EXPECT_FALSE(flips.ok);
  EXPECT_GT(flips.mismatches, 1);
  EXPECT_LT(flips.mismatches, 20) << "few tokens have one of these two";
  EXPECT_NE(flips.why.find("the 2 largest of "), std::string::npos) << flips.why;
}

TEST_F(RouterGemmProblem, ASampleRejectsWhatTheWholeTruthRejects) {
  const Case c = router_gemm_case({{"tokens", "300"}});
  RouterGemm problem(*device_, c, /*most_products=*/0);
  check::launch_host_variant(problem, c, "blocked");
  EXPECT_TRUE(problem.check().accuracy[0].ok) << problem.check().accuracy[0].why;
  EXPECT_EQ(problem.sampled_outputs().size(), 1u);
  EXPECT_LT(problem.check().accuracy[1].elements, 300);
  auto* logits = static_cast<float*>(problem.args().logits);
  for (int i = 0; i < 300 * 24; i += 37) {
    const float right = std::exchange(logits[i], NAN);
    EXPECT_FALSE(problem.check().accuracy[0].ok) << i;
    logits[i] = right;
  }
  problem.corruptions().experts_swapped.apply();
  EXPECT_FALSE(problem.check().accuracy[0].ok);
}

TEST_F(RouterGemmProblem, HostVariantsAgreeWithTheTruth) {
  for (const char* weights : {"bf16", "fp32"}) {
    for (const char* out : {"fp32", "bf16"}) {
      for (const Params& own : std::vector<Params>{{{"values", "edges"}, {"tokens", "19"}},
                                                   {{"tokens", "1"}, {"hidden", "7168"}},
                                                   {{"bias", "1"}, {"experts", "33"}},
                                                   {{"experts", "2"}, {"hidden", "8"}}}) {
        Params params = own;
        params["weights"] = weights;
        params["out"] = out;
        check::expect_host_variants_right(*device_, router_gemm_case(params));
      }
    }
  }
}

TEST_F(RouterGemmProblem, CostIsThatOfOperandsOnce) {
  const RouterGemm problem(*device_, router_gemm_case({{"bias", "1"}, {"out", "bf16"}}));
  EXPECT_EQ(problem.cost().read_bytes, 2 * (7 * 232 + 24 * 232 + 24));
  EXPECT_EQ(problem.cost().write_bytes, 2 * 7 * 24);
  EXPECT_EQ(problem.cost().flops, 2 * 7 * 24 * 232);
}

TEST(RouterGemmCases, AreRefusedWithTheReason) {
  const auto why = [](const Params& params) {
    return test::refusal_of([&] { RouterGemm::validate(router_gemm_case(params)); }, Exit::usage);
  };
  EXPECT_NE(why({{"hidden", "100"}}).find("hidden = 100 is not a multiple of 8"),
            std::string::npos);
  EXPECT_NE(why({{"topk", "25"}, {"experts", "16"}}).find("topk"), std::string::npos);
  EXPECT_NE(why({{"weights", "fp16"}}).find("bf16"), std::string::npos);
}

}  // namespace
}  // namespace moegate::router_gemm
