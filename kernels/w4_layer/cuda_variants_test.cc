// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include "kernels/w4_layer/w4_layer_testing.h"

namespace moegate::w4_layer {
namespace {

using CudaW4Layer = check::CudaVariants;

// Both formats; H and I of half a unit, of units and a rest, of gpt-oss.
TEST_F(CudaW4Layer, VariantsAgreeWithTheTruth) {
  for (const char* block : {"8", "32", "64"}) {
    for (const char* hidden : {"96", "736", "2880"}) {
      for (const char* inter : {"32", "192"}) {
        const Params mxfp4 = {{"block", block}, {"hidden", hidden}, {"inter", inter}};
        Params int4 = mxfp4;
        int4.insert({{"weights", "int4"}, {"bias", "0"}});
        expect_right(w4_layer_case(mxfp4));
        expect_right(w4_layer_case(int4));
      }
    }
  }
}

// One row, few and many of an expert, all rows at one.
TEST_F(CudaW4Layer, VariantsAgreeOnManyRows) {
  for (const char* tokens : {"1", "16", "257"}) {
    for (const char* routing : {"uniform", "zipf:1.2", "hot:1:1"}) {
      for (const char* topk : {"1", "4"}) {
        expect_right(w4_layer_case(
            {{"tokens", tokens}, {"topk", topk}, {"routing", routing}, {"experts", "40"}}));
      }
    }
  }
}

}  // namespace
}  // namespace moegate::w4_layer
