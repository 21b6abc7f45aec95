// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU; which cases they take, wherever they are
// built.
#include <gtest/gtest.h>

#include "kernels/moe_sum/moe_sum_testing.h"

namespace moegate::moe_sum {
namespace {

using CudaMoeSum = check::CudaVariants;

// Rows: one, fewer than a batch of 8, as many, one more, two batches. Columns: below, at and above
// a block's 1024, and what sum_vectorised refuses.
TEST_F(CudaMoeSum, VariantsAgreeWithTheTruth) {
  for (const char* topk : {"1", "2", "3", "4", "7", "8", "9", "16"}) {
    for (const char* hidden : {"200", "1016", "1024", "1032", "2050", "7168"}) {
      for (const char* tokens : {"1", "7", "130"}) {
        expect_right(moe_sum_case({{"tokens", tokens}, {"topk", topk}, {"hidden", hidden}}));
      }
      expect_right(moe_sum_case({{"topk", topk}, {"hidden", hidden}, {"scale", "2.5"}}));
    }
  }
}

TEST(MoeSumEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const auto refusal = [](const char* variant, const Params& params) {
    return find_variant(MoeSum::kOp, Backend::cuda, variant).unsupported(moe_sum_case(params), {});
  };
  EXPECT_EQ(refusal("sum_bf16_acc", {{"topk", "4"}}), "");
  EXPECT_NE(refusal("sum_bf16_acc", {{"topk", "5"}}), "");
  EXPECT_NE(refusal("sum_bf16_acc", {{"scale", "2.5"}}), "");
  EXPECT_EQ(refusal("sum_vectorised", {{"hidden", "2056"}}), "");
  EXPECT_NE(refusal("sum_vectorised", {{"hidden", "2052"}}), "");
}

}  // namespace
}  // namespace moegate::moe_sum
