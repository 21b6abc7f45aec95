// SPDX-License-Identifier: Apache-2.0
// Which cases the CUDA variants take and by which path, wherever they are built.
#include <gtest/gtest.h>

#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm {
namespace {

/// Why a variant refuses a case; needs no GPU, only a program built with CUDA.
template <class P>
std::string refusal(const std::string& variant, const Params& params, int k, int n) {
  const Case c = product_case<P>(params, k, n);
  return find_variant(c.op, Backend::cuda, variant).unsupported(c, DeviceFacts{});
}

TEST(SwapAbEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const Params few = {{"tokens", "4"}};
  EXPECT_EQ(refusal<MoeDown>("swap_ab", few, 128, 264), "");
  EXPECT_EQ(refusal<MoeDown>("swap_ab_split_k", few, 512, 264), "");
  EXPECT_NE(refusal<MoeDown>("swap_ab_split_k", few, 384, 264).find("K = 384"), std::string::npos);
  EXPECT_NE(refusal<MoeGateUp>("swap_ab_split_k", few, 256, 264).find("below 512"),
            std::string::npos);
  EXPECT_NE(refusal<MoeGateUp>("swap_ab", {{"block", "48"}}, 256, 264).find("block = 48"),
            std::string::npos);
  const Params bf16 = {{"tokens", "4"}, {"dtype", "bf16"}};
  EXPECT_EQ(refusal<MoeDown>("swap_ab", bf16, 264, 8), "");
  EXPECT_EQ(refusal<MoeDown>("swap_ab_split_k", bf16, 256, 264), "");
  EXPECT_NE(refusal<MoeDown>("swap_ab_split_k", bf16, 192, 264).find("below 256"),
            std::string::npos);
  EXPECT_NE(refusal<MoeDown>("swap_ab", bf16, 260, 264).find("multiple of 8"), std::string::npos);
}

TEST(ScalingEligibility, OfChannelsAndTensorsIsInThreeForms) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  for (const char* scaling : {"channel", "tensor"}) {
    const Params few = {{"tokens", "4"}, {"scaling", scaling}};
    const Params many = {{"tokens", "400"}, {"block", "128"}, {"scaling", scaling}};
    for (const char* variant : {"gather", "swap_ab", "swap_ab_split_k"})
      EXPECT_EQ(refusal<MoeDown>(variant, few, 528, 264), "") << variant;
    for (const char* variant : {"prefill", "prefill_fast_accum"})
      EXPECT_EQ(refusal<MoeGateUp>(variant, many, 144, 264), "") << variant;
    for (const char* variant : {"wide_tiles", "resident_rows", "scalar_b_scale", "tma_down",
                                "prefill_sorted", "prefill_contiguous"}) {
      EXPECT_NE(refusal<MoeDown>(variant, many, 256, 264).find("of blocks only"), std::string::npos)
          << variant;
    }
    for (const char* variant : {"sorted_rows", "split_k2", "gather_split_k1"})
      EXPECT_NE(refusal<MoeGateUp>(variant, many, 256, 264), "") << variant;
  }
}

TEST(BiasEligibility, IsThatOfScalesAndInBf16) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  for (const Params& format : std::vector<Params>{
           {{"dtype", "bf16"}}, {{"scaling", "channel"}}, {{"scaling", "tensor"}}}) {
    Params params = format;
    params.insert({{"bias", "1"}, {"tokens", "400"}, {"block", "128"}});
    for (const char* variant : {"gather", "swap_ab", "swap_ab_split_k"})
      EXPECT_EQ(refusal<MoeDown>(variant, params, 528, 264), "") << variant;
    // Others multiply bf16 in blocks of 128.
    const bool fp8 = !format.contains("dtype");
    EXPECT_EQ(refusal<MoeDown>("prefill", params, 528, 264),
              fp8 ? "" : "multiplies fp8 and int8 only");
    for (const char* variant : {"wide_tiles", "resident_rows", "scalar_b_scale", "tma_down",
                                "prefill_sorted", "prefill_contiguous", "prefill_fast_accum"})
      EXPECT_NE(refusal<MoeDown>(variant, params, 512, 264), "") << variant;
    for (const char* variant : {"sorted_rows", "split_k2", "gather_split_k1"})
      EXPECT_NE(refusal<MoeGateUp>(variant, params, 512, 264), "") << variant;
  }
}

TEST(Int8Eligibility, IsInFourForms) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  for (const char* scaling : {"channel", "tensor"}) {
    const Params few = {{"tokens", "4"}, {"dtype", "int8"}, {"scaling", scaling}};
    Params biased = few, many = few;
    biased["bias"] = "1";
    many["block"] = "128";
    for (const char* variant : {"gather", "swap_ab", "swap_ab_split_k"}) {
      EXPECT_EQ(refusal<MoeDown>(variant, few, 528, 264), "") << variant;
      EXPECT_EQ(refusal<MoeDown>(variant, biased, 528, 264), "") << variant;
      EXPECT_EQ(refusal<MoeDown>(variant, many, 528, 264), "") << variant;
    }
    EXPECT_EQ(refusal<MoeDown>("prefill", many, 528, 264), "");
    biased["block"] = "128";
    EXPECT_EQ(refusal<MoeDown>("prefill", biased, 528, 264), "");
    EXPECT_NE(refusal<MoeDown>("prefill", few, 528, 264), "");  // blocks of 16
    for (const char* variant : {"wide_tiles", "resident_rows", "scalar_b_scale", "tma_down",
                                "prefill_sorted", "prefill_contiguous"})
      EXPECT_EQ(refusal<MoeDown>(variant, many, 512, 264), "does not multiply int8") << variant;
    for (const char* variant : {"sorted_rows", "split_k2", "gather_split_k1"})
      EXPECT_EQ(refusal<MoeGateUp>(variant, many, 512, 264), "does not multiply int8") << variant;
  }
}

TEST(WideTilesEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  for (const char* dtype : {"fp8", "bf16"}) {
    const Params many = {{"tokens", "400"}, {"block", "64"}, {"dtype", dtype}};
    EXPECT_EQ(refusal<MoeDown>("wide_tiles", many, 256, 264), "") << dtype;
    EXPECT_NE(refusal<MoeDown>("wide_tiles", {{"block", "32"}, {"dtype", dtype}}, 256, 264)
                  .find("block = 32"),
              std::string::npos);
  }
  const Params bf16 = {{"tokens", "400"}, {"block", "64"}, {"dtype", "bf16"}};
  EXPECT_NE(refusal<MoeGateUp>("wide_tiles", bf16, 260, 264).find("K = 260"), std::string::npos);
}

// 8 experts, each with as many rows as a block has, and one more.
TEST(WideTilesPath, PairsBlocksOfBf16WhereExpertsHaveTwo) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const auto path = [](const char* dtype, const char* tokens, const char* block) {
    const Params params = {
        {"tokens", tokens}, {"experts", "8"}, {"topk", "1"}, {"block", block}, {"dtype", dtype}};
    const Case c = product_case<MoeDown>(params, 256, 264);
    return find_variant(c.op, Backend::cuda, "wide_tiles").path(c, DeviceFacts{});
  };
  EXPECT_EQ(path("bf16", "1025", "128"), "pairs of blocks");
  EXPECT_EQ(path("bf16", "1024", "128"), "");
  EXPECT_EQ(path("bf16", "1025", "64"), "");
  EXPECT_EQ(path("fp8", "1025", "128"), "");
}

TEST(PrefillEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const Params large = {{"block", "128"}}, small = {{"block", "64"}};
  for (const char* variant : {"prefill", "prefill_sorted", "prefill_contiguous"}) {
    EXPECT_EQ(refusal<MoeDown>(variant, large, 128, 264), "");
    EXPECT_NE(refusal<MoeDown>(variant, small, 128, 264).find("block = 64 is not 128"),
              std::string::npos);
    EXPECT_NE(refusal<MoeDown>(variant, large, 128, 260).find("N = 260"), std::string::npos);
  }
  EXPECT_NE(refusal<MoeDown>("prefill_fast_accum", large, 128, 264).find("of a channel or tensor"),
            std::string::npos);
  for (const char* variant : {"prefill", "prefill_contiguous"}) {
    EXPECT_EQ(refusal<MoeGateUp>(variant, large, 128, 264), "");
    EXPECT_NE(refusal<MoeGateUp>(variant, {{"block", "128"}, {"dtype", "bf16"}}, 256, 264)
                  .find("fp8 and int8 only"),
              std::string::npos);
  }
}

TEST(GatherEligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const Params few = {{"tokens", "4"}}, bf16 = {{"tokens", "4"}, {"dtype", "bf16"}};
  EXPECT_EQ(refusal<MoeGateUp>("gather", few, 256, 264), "");
  EXPECT_EQ(refusal<MoeDown>("gather", bf16, 264, 8), "");
  EXPECT_EQ(refusal<MoeDown>("scalar_b_scale", few, 256, 264), "");
  EXPECT_EQ(refusal<MoeGateUp>("split_k8", few, 128, 264), "");
  EXPECT_NE(refusal<MoeGateUp>("gather", {{"block", "48"}}, 256, 264).find("block = 48"),
            std::string::npos);
  EXPECT_NE(refusal<MoeDown>("gather", few, 256, 260).find("N = 260"), std::string::npos);
  EXPECT_NE(refusal<MoeGateUp>("gather", bf16, 260, 264).find("K = 260"), std::string::npos);
  EXPECT_NE(refusal<MoeGateUp>("scalar_b_scale", bf16, 256, 264).find("bf16"), std::string::npos);
  EXPECT_EQ(refusal<MoeGateUp>("sorted_rows", bf16, 256, 264), "");
  EXPECT_EQ(refusal<MoeDown>("tma_down", few, 256, 264), "");
  EXPECT_EQ(refusal<MoeDown>("tma_down", bf16, 256, 264), "");
  EXPECT_NE(refusal<MoeDown>("tma_down", bf16, 260, 264).find("K = 260"), std::string::npos);
  EXPECT_NE(refusal<MoeDown>("tma_down", few, 256, 260).find("N = 260"), std::string::npos);
  const Params many = {{"tokens", "65536"}, {"topk", "8"}, {"block", "16"}};
  EXPECT_EQ(refusal<MoeGateUp>("gather", many, 256, 512), "");
  EXPECT_NE(refusal<MoeGateUp>("split_k2", many, 256, 512).find("tiles exceed 65535"),
            std::string::npos);
}

}  // namespace
}  // namespace moegate::moe_gemm
