// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include "kernels/silu_mul_quant/silu_mul_quant_testing.h"

namespace moegate::silu_mul_quant {
namespace {

using CudaSiluMulQuant = check::CudaVariants;

// Groups in all: fewer than a block's 16, as many, one more (half a warp of the next), many blocks.
// Columns: fewer than the first kernel's threads, as many, more.
TEST_F(CudaSiluMulQuant, VariantsAgreeWithTheTruth) {
  for (const char* values : {"normal", "edges"}) {
    for (const char* inter : {"128", "384", "1024", "2176"}) {
      for (const char* tokens : {"1", "15", "16", "17", "333"}) {
        for (const char* topk : {"1", "8"}) {
          expect_right(silu_mul_quant_case(
              {{"tokens", tokens}, {"topk", topk}, {"inter", inter}, {"values", values}}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace moegate::silu_mul_quant
