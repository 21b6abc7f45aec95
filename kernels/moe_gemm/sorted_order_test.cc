// SPDX-License-Identifier: Apache-2.0
// What lies between the two products in sorted order: the output as check() reads it, and the
// copies of the activations.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/device/open.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm {
namespace {

/// The rows that the host's gather makes, put where a variant in sorted order puts them.
void write_sorted(MoeGateUp& problem, const Case& c) {
  check::launch_host_variant(problem, c, "gather");
  const MoeGemmArgs args = problem.args();
  const size_t width = static_cast<size_t>(problem.shape.n);
  const auto rows = static_cast<size_t>(problem.shape.rows());
  const std::vector<uint16_t> right(args.out, args.out + rows * width);
  problem.poison();
  for (int i = 0; i < *args.padded_rows; ++i) {
    const auto r = static_cast<size_t>(args.sorted_token_ids[i]);
    if (r < rows) std::copy_n(right.data() + r * width, width, args.out + i * problem.shape.n);
  }
  problem.sorted_args();
}

TEST(MoeGemmSortedOrder, OutputsAreJudgedInTheOrderAskedFor) {
  const auto device = open_host_device();
  for (const double most_products : {0.0, MoeGemm::kWholeTruth}) {
    const Case c = moe_gemm_case<MoeGateUp>({{"hidden", "512"}, {"inter", "512"}});
    MoeGateUp problem(*device, c, most_products);
    check::launch_host_variant(problem, c, "gather");
    const uint64_t hash = problem.check().hash;
    write_sorted(problem, c);
    const Checked sorted = problem.check();
    EXPECT_TRUE(sorted.accuracy[0].ok) << sorted.accuracy[0].why;
    EXPECT_EQ(sorted.hash, hash) << "of the routed rows alone, in one order";
    const Corruptions corruptions = problem.corruptions();
    for (const Corruption* corruption : {&corruptions.experts_swapped, &corruptions.token_dropped,
                                         &corruptions.scales_transposed}) {
      write_sorted(problem, c);
      corruption->apply();
      EXPECT_FALSE(problem.check().accuracy[0].ok);
    }
    write_sorted(problem, c);
    problem.args();
    EXPECT_FALSE(problem.check().accuracy[0].ok) << "sorted rows are not in token order";
  }
}

TEST(MoeGemmSortedOrder, RoomForItIsNotWrittenInTokenOrder) {
  const auto device = open_host_device();
  const Case c = moe_gemm_case<MoeGateUp>({});
  MoeGateUp problem(*device, c);
  check::launch_host_variant(problem, c, "gather");
  ASSERT_TRUE(problem.check().accuracy[0].ok);
  problem.args().out[int64_t{problem.shape.rows()} * problem.shape.n] = 0;  // first of row R
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "element 0 beyond the routed rows",
                      problem.check().accuracy[0].why);
}

TEST(MoeGemmSortedOrder, ActivationsHavePoisonInRowsOfPadding) {
  const auto device = open_host_device();
  for (const char* dtype : {"fp8", "bf16"}) {
    MoeDown problem(*device, moe_gemm_case<MoeDown>({{"dtype", dtype}, {"inter", "256"}}));
    EXPECT_THROW(problem.sorted_args(), Error) << "nobody sorted them yet";
    problem.sort_activations();
    problem.sort_activations();
    const MoeGemmArgs tokens = problem.args(), sorted = problem.sorted_args();
    const auto bytes = problem.shape.k * static_cast<int64_t>(size_of(problem.shape.dtype));
    const auto row = [](const void* base, int64_t r, int64_t width) {
      const auto* from = static_cast<const uint8_t*>(base) + r * width;
      return std::vector<uint8_t>(from, from + width);
    };
    for (int64_t place = 0; place < problem.shape.capacity(); ++place) {
      const int32_t r = sorted.sorted_token_ids[place];
      const bool padding = r >= problem.shape.rows();
      EXPECT_EQ(row(sorted.x, place, bytes),
                padding ? std::vector<uint8_t>(static_cast<size_t>(bytes), 0xff)
                        : row(tokens.x, r, bytes));
      if (!tokens.x_scales) continue;
      EXPECT_EQ(row(sorted.x_scales, place, 8),
                padding ? std::vector<uint8_t>(8, 0xff) : row(tokens.x_scales, r, 8));
    }
    EXPECT_EQ(sorted.out, tokens.out);
  }
}

}  // namespace
}  // namespace moegate::moe_gemm
