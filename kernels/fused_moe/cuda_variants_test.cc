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
TEST_F(CudaFusedMoe, VariantsAgreeAtDecodeOfALongLayer) {
  for (const char* tokens : {"1", "3"}) {
    expect_right(
        fused_moe_case({{"tokens", tokens}, {"hidden", "4096"}, {"inter", "256"}, {"topk", "2"}}));
  }
}

}  // namespace
}  // namespace moegate::fused_moe
