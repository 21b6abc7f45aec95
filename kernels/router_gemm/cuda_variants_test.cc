// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU, those of one order of sums bit by bit; which
// cases they take, wherever they are built.
#include <gtest/gtest.h>

#include "kernels/router_gemm/router_gemm_testing.h"

namespace moegate::router_gemm {
namespace {

class CudaRouterGemm : public check::CudaVariants {
 protected:
  uint64_t hash_of(RouterGemm& problem, const Case& c, const std::string& name) {
    const Variant& variant = find_variant(c.op, Backend::cuda, name);
    const Launch where{device_->stream(), device_->facts()};
    problem.poison();
    variant.prepare(problem, where);
    variant.launch(problem, where);
    device_->synchronize();
    const Checked checked = problem.check();
    EXPECT_TRUE(checked.accuracy[0].ok) << c.key() << " " << name << checked.accuracy[0].why;
    EXPECT_EQ(problem.broken_guard(), "") << c.key() << " " << name;
    return checked.hash;
  }
};

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

// All forms of the clusters (1, 2 and 4 tiles of experts in a block) and of the tiles: K cut over
// 16 to 2 blocks and whole, with neighbours along tokens, experts, both and none.
TEST_F(CudaRouterGemm, TheOneOrderHasOneHash) {
  if (device_->facts().capability != 90) GTEST_SKIP() << "no clusters, or no wgmma";
  for (const char* tokens : {"1", "20", "64", "128", "500", "1024", "2048", "4300"}) {
    for (const char* experts : {"32", "64", "256", "264"}) {
      for (const char* hidden : {"40", "2880", "7168"}) {
        const Case c = router_gemm_case(
            {{"tokens", tokens}, {"experts", experts}, {"hidden", hidden}, {"bias", "1"}});
        RouterGemm problem(*device_, c);
        const uint64_t hash = hash_of(problem, c, "tiles");
        EXPECT_EQ(hash_of(problem, c, "mma_cluster"), hash) << c.key();
        EXPECT_EQ(hash_of(problem, c, "one_order"), hash) << c.key();
      }
    }
  }
}

// Tiles with a rest and without, of odd and even numbers, K whole and cut; last all of K in blocks
// that are alone, in pairs and in clusters of both axes.
TEST_F(CudaRouterGemm, TilesOfEveryPlanHaveThatHash) {
  if (device_->facts().capability != 90) GTEST_SKIP() << "no clusters, or no wgmma";
  const auto expect_hash = [&](const std::string& tokens, const std::string& experts,
                               const std::string& hidden) {
    const Case c = router_gemm_case({{"tokens", tokens},
                                     {"experts", experts},
                                     {"topk", "1"},
                                     {"hidden", hidden},
                                     {"out", "bf16"}});
    RouterGemm problem(*device_, c);
    EXPECT_EQ(hash_of(problem, c, "tiles"), hash_of(problem, c, "mma_cluster")) << c.key();
  };
  for (const char* experts : {"2", "17", "32", "100", "128", "256", "520"}) {
    for (const char* tokens : {"1", "63", "64", "65", "129", "1000", "2049"}) {
      expect_hash(tokens, experts, "1056");
    }
  }
  for (const char* tokens : {"512", "2048"}) expect_hash(tokens, "256", "7168");
  const int odd = (device_->facts().processors - 1) | 1;
  for (const int tiles : {odd, odd - 1, 128}) {
    for (const char* experts : {"17", "128", "256"}) {
      expect_hash(std::to_string(64 * tiles), experts, "232");
    }
  }
}

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
  EXPECT_EQ(refusal("one_order", {{"hidden", "8200"}}), "");
  for (const char* variant : {"mma_cluster", "tiles", "tile_mma", "one_order"}) {
    EXPECT_NE(refusal(variant, {{"weights", "fp32"}}), "") << variant;
  }
  EXPECT_NE(refusal("cublaslt", {{"weights", "fp32"}}), "");
  EXPECT_NE(refusal("cublaslt", {{"experts", "17"}}).find("17"), std::string::npos);
}

}  // namespace
}  // namespace moegate::router_gemm
