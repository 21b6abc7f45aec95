// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include "kernels/fused_moe/fused_moe_testing.h"

namespace moegate::fused_moe {
namespace {

using CudaFusedMoe = check::CudaVariants;

TEST_F(CudaFusedMoe, VariantsAgreeWithTheTruth) {
  for (const char* block : {"16", "32", "64", "128"}) {
    for (const char* hidden : {"128", "640", "2048"}) {
      for (const char* inter : {"128", "384"}) {
        expect_right(fused_moe_case(
            {{"tokens", "37"}, {"block", block}, {"hidden", hidden}, {"inter", inter}}));
      }
    }
  }
}

// Both ways of aligning rows; experts without any; one with all.
TEST_F(CudaFusedMoe, VariantsAgreeOnAnyLoad) {
  for (const char* tokens : {"1", "16", "65", "400"}) {
    for (const char* experts : {"8", "64", "65", "256"}) {
      for (const char* routing : {"uniform", "hot:3:1", "zipf:1.2"}) {
        expect_right(
            fused_moe_case({{"tokens", tokens}, {"experts", experts}, {"routing", routing}}));
      }
    }
  }
  expect_right(fused_moe_case({{"tokens", "70"}, {"topk", "1"}, {"routing", "hot:1:1"}}));
}

// K long enough for gate-up's to be split.
TEST_F(CudaFusedMoe, VariantsAgreeOnALongLayer) {
  for (const char* tokens : {"1", "3", "600"}) {
    expect_right(
        fused_moe_case({{"tokens", tokens}, {"hidden", "4096"}, {"inter", "256"}, {"topk", "2"}}));
  }
}

// Where activation and quantisation are changes no bits, nor does the order of what is between the
// products: without a tile file chain_tuned multiplies with prefill, or with wide_tiles, whose sums
// are the same. One group of 128 and three; blocks of an expert: none, one, several.
TEST_F(CudaFusedMoe, TheFusedActivationHasTheBitsOfTheChain) {
  for (const char* inter : {"128", "384"}) {
    for (const char* routing : {"uniform", "hot:1:1"}) {
      const Case c = fused_moe_case(
          {{"tokens", "500"}, {"block", "128"}, {"inter", inter}, {"routing", routing}});
      Bench bench(*device_, c);
      const auto hash = [&](const char* variant) {
        const Result result = bench.verify(find_variant(c.op, Backend::cuda, variant));
        EXPECT_EQ(result.status, Status::ok) << c.key() << " " << variant << ": " << result.why;
        return result.seeds.empty() ? 0 : result.seeds[0].hash;
      };
      EXPECT_EQ(hash("chain_sorted"), hash("chain_tuned")) << c.key();
    }
  }
}

}  // namespace
}  // namespace moegate::fused_moe
