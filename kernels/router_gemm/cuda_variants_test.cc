// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU, and the plans of split_k4 bit by bit; which
// cases the variants take, wherever they are built.
#include <gtest/gtest.h>

#include "kernels/router_gemm/router_gemm_testing.h"
#include "kernels/router_gemm/split_k4.h"

namespace moegate::router_gemm {
namespace {

class CudaRouterGemm : public check::CudaVariants {};

// K: less than a group, one and a rest, as many groups as parts, one more, gpt-oss's, DeepSeek's,
// the most. Experts: two, a tile, one more, tiles of 128 and a rest.
TEST_F(CudaRouterGemm, VariantsAgreeWithTheTruth) {
  for (const char* hidden : {"8", "40", "1024", "1056", "2880", "7168", "8192"}) {
    for (const char* experts : {"2", "16", "17", "32", "128", "264"}) {
      for (const char* out : {"fp32", "bf16"}) {
        expect_right(router_gemm_case({{"hidden", hidden}, {"experts", experts}, {"out", out}}));
      }
    }
  }
}

// Tokens: around tiles of 8, clusters of 64, tiles of 64 and 128, and the crossing.
TEST_F(CudaRouterGemm, VariantsAgreeAtAllTokens) {
  for (const char* tokens : {"1", "8", "9", "63", "64", "65", "127", "129", "300", "1025"}) {
    for (const char* hidden : {"232", "2880"}) {
      expect_right(router_gemm_case({{"tokens", tokens}, {"hidden", hidden}, {"bias", "1"}}));
    }
  }
}

TEST_F(CudaRouterGemm, VariantsAgreeAtTheEdges) {
  for (const char* weights : {"bf16", "fp32"}) {
    for (const char* out : {"fp32", "bf16"}) {
      expect_right(router_gemm_case({{"tokens", "40"},
                                     {"weights", weights},
                                     {"out", out},
                                     {"bias", "1"},
                                     {"values", "edges"}}));
    }
  }
}

TEST_F(CudaRouterGemm, Fp32WeightsAreTakenWhole) {
  for (const char* hidden : {"8", "2048", "2056", "4096", "6144", "16384"}) {
    expect_right(router_gemm_case({{"tokens", "11"}, {"hidden", hidden}, {"weights", "fp32"}}));
  }
}

#ifdef MOEGATE_HAS_CUDA
// Tiles with a rest and without, of odd and even numbers along both axes, parts of K without a
// step.
TEST_F(CudaRouterGemm, PlansOfSplitK4HaveOneHash) {
  if (device_->facts().capability != 90) GTEST_SKIP() << "no clusters, or no wgmma";
  const Launch where{device_->stream(), device_->facts()};
  for (const char* hidden : {"40", "264", "2880", "7168"}) {
    for (const char* experts : {"2", "17", "32", "100", "256", "264"}) {
      for (const char* tokens : {"1", "64", "129", "1000"}) {
        const Case c = router_gemm_case({{"tokens", tokens},
                                         {"experts", experts},
                                         {"topk", "1"},
                                         {"hidden", hidden},
                                         {"bias", "1"}});
        RouterGemm problem(*device_, c);
        std::optional<uint64_t> hash;
        for (const SplitPlan& plan : kSplitPlans) {
          problem.poison();
          launch_split(problem.args(), plan, where);
          device_->synchronize();
          const Checked checked = problem.check();
          EXPECT_LT(checked.accuracy[0].rel_l2, 1e-5) << c.key();
          EXPECT_EQ(problem.broken_guard(), "") << c.key();
          EXPECT_EQ(checked.hash, hash.value_or(checked.hash))
              << c.key() << ": tiles of " << plan.tokens << " x " << plan.experts << " over "
              << plan.blocks;
          hash = checked.hash;
        }
      }
    }
  }
}
#endif

TEST(RouterGemmEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const auto refusal = [](const char* variant, const Params& params) {
    return find_variant(RouterGemm::kOp, Backend::cuda, variant)
        .unsupported(router_gemm_case(params), {});
  };
  EXPECT_EQ(refusal("mma_cluster", {{"hidden", "8192"}}), "");
  EXPECT_NE(refusal("mma_cluster", {{"hidden", "8200"}}).find("8192"), std::string::npos);
  EXPECT_EQ(refusal("split_k4", {{"hidden", "8200"}}), "");
  for (const char* variant : {"mma_cluster", "tile_mma", "split_k4"}) {
    EXPECT_NE(refusal(variant, {{"weights", "fp32"}}), "") << variant;
  }
  EXPECT_NE(refusal("cublaslt", {{"weights", "fp32"}}), "");
  EXPECT_NE(refusal("cublaslt", {{"experts", "17"}}).find("17"), std::string::npos);
}

}  // namespace
}  // namespace moegate::router_gemm
