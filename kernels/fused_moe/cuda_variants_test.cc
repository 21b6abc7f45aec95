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

// x in bf16, by all that quantise it: few and many tokens, one group of H and several.
TEST_F(CudaFusedMoe, VariantsAgreeOnInputInBf16) {
  for (const char* tokens : {"1", "37", "600"}) {
    for (const char* hidden : {"128", "640", "2048"}) {
      expect_right(fused_moe_case({{"tokens", tokens}, {"hidden", hidden}, {"input", "bf16"}}));
    }
  }
}

// Where activation and quantisation are changes no bits, nor does the order of what is between the
// products: without a tile file chain_tuned multiplies with prefill, or with wide_tiles, whose sums
// are the same. One group of 128, three, and so many that the tiles of a last round are divided;
// blocks of an expert: none, one, several.
TEST_F(CudaFusedMoe, TheFusedActivationHasTheBitsOfTheChain) {
  const Params many = {{"tokens", "500"}},
               divided = {{"tokens", "300"}, {"experts", "4"}, {"topk", "2"}};
  for (const auto& [inter, load] : {std::pair{"128", many}, {"384", many}, {"2560", divided}}) {
    for (const char* routing : {"uniform", "hot:1:1"}) {
      Params params = {{"block", "128"}, {"inter", inter}, {"routing", routing}};
      params.insert(load.begin(), load.end());
      const Case c = fused_moe_case(params);
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

/// Three times, with the same bits: its barrier starts where the launch before left it.
void expect_one_launch_right(Device& device, const Case& c) {
  Bench bench(device, c);
  const Variant& variant = find_variant(c.op, Backend::cuda, "one_launch");
  uint64_t hash = 0;
  for (int i = 0; i < 3; ++i) {
    Result result = bench.verify(variant);
    if (result.status == Status::ok) bench.check_unseen(variant, result);
    EXPECT_EQ(result.status, Status::ok) << c.key() << ": " << result.why;
    if (result.seeds.empty()) return;
    if (i == 0) hash = result.seeds[0].hash;
    EXPECT_EQ(result.seeds[0].hash, hash) << c.key();
  }
}

// One group of K, an odd and an even number; rows of an expert: none, one, eight.
TEST_F(CudaFusedMoe, OneLaunchIsRightAtDecode) {
  for (const char* tokens : {"1", "2", "3", "8"}) {
    for (const char* hidden : {"128", "640", "2048"}) {
      for (const char* inter : {"128", "384"}) {
        for (const char* routing : {"uniform", "hot:2:1"}) {
          expect_one_launch_right(*device_, fused_moe_case({{"tokens", tokens},
                                                            {"topk", "2"},
                                                            {"hidden", hidden},
                                                            {"inter", inter},
                                                            {"routing", routing}}));
        }
      }
    }
  }
  expect_one_launch_right(*device_,
                          fused_moe_case({{"tokens", "1"}, {"topk", "8"}, {"inter", "768"}}));
}

// 9, 16, 20 and 48 rows of an expert; the most rows that it takes.
TEST_F(CudaFusedMoe, OneLaunchReadsAnExpertAgainForMoreThanEightRows) {
  for (const char* tokens : {"9", "16", "20", "48"}) {
    expect_one_launch_right(*device_,
                            fused_moe_case({{"tokens", tokens}, {"experts", "2"}, {"topk", "2"}}));
  }
  expect_one_launch_right(*device_,
                          fused_moe_case({{"tokens", "12"}, {"topk", "8"}, {"hidden", "640"}}));
}

// Shares of the ring that wrap often, and one that down fits into.
TEST_F(CudaFusedMoe, OneLaunchIsRightOnLayersOfModels) {
  for (const char* tokens : {"1", "8"}) {
    for (const auto& [hidden, inter] : {std::pair{"7168", "256"}, {"2048", "768"}}) {
      expect_one_launch_right(*device_, fused_moe_case({{"tokens", tokens},
                                                        {"experts", "32"},
                                                        {"topk", "8"},
                                                        {"hidden", hidden},
                                                        {"inter", inter}}));
    }
  }
}

// More of down's strips than there is memory for at once.
TEST_F(CudaFusedMoe, OneLaunchMultipliesStripsInTurn) {
  for (const char* tokens : {"4", "12"}) {
    expect_one_launch_right(*device_, fused_moe_case({{"tokens", tokens},
                                                      {"experts", "8"},
                                                      {"topk", "8"},
                                                      {"hidden", "7168"},
                                                      {"inter", "768"}}));
  }
}

TEST_F(CudaFusedMoe, OneLaunchLeavesManyRowsToOthers) {
  const Case c = fused_moe_case({{"tokens", "97"}, {"topk", "1"}});
  const Variant& variant = find_variant(c.op, Backend::cuda, "one_launch");
  EXPECT_FALSE(variant.unsupported(c, device_->facts()).empty());
}

}  // namespace
}  // namespace moegate::fused_moe
