// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (its products)
// The layer as a chain of the best kernel of each part, five launches: redundant_count, swap_ab
// (cut by its own rule), the fused activation and quantisation, swap_ab, sum_vectorised.
//
// Floor: the weights of the experts that have rows, once; behind that five launches, each of which
// waits for the last block of the one before.
#include "kernels/fused_moe/best_parts.h"
#include "kernels/moe_align/launches.h"

namespace moegate::fused_moe {
namespace {

moe_gemm::tiles::TileChoice swap_ab(const moe_gemm::MoeGemmShape& product, const Case& /*c*/,
                                    const DeviceFacts& device) {
  return moe_gemm::tiles::usual_tile("swap_ab", product, device);
}

void launch(FusedMoe& problem, const Launch& where) {
  launch_best_parts(problem, swap_ab, where);
}

const Kernel<FusedMoe> kernel({
    .name = "chain_swap_ab",
    .backend = Backend::cuda,
    .help = "redundant_count, swap_ab (split K for few tiles), fused quantisation, swap_ab, sum",
    .launch = launch,
    .workspace = workspace,
    .unsupported =
        [](const Case& c, const DeviceFacts&) {
          return moe_align::redundant_count_unsupported(FusedMoeShape::of(c).rows());
        },
    .tolerance = FusedMoe::kOtherSums,
    .between = FusedMoe::kSumsRounded,
});

}  // namespace
}  // namespace moegate::fused_moe
