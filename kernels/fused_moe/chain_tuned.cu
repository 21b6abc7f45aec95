// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (moe_align by clusters)
// The layer as a chain of the best kernel of each part, both products as `moegate tune` found them
// fastest for the shape and the nearest token count (suites/tiles), which share one block of rows.
// Ask for block = tuned: with another block than the file's there is no tuned layer.
//
// On an H200 (83d3bd11), us at 1, 2, 4, 8, 32 and 128 tokens, one_launch in brackets and below it
// the chain when each launch waited for the one before: R1 TP8 20.3, 32.4, 50.7, 84.1, 217, 340
// (18.8, 30.3, 55.7, 101.9); 24.4, 35.5, 53.9, 90.2, 222, 344. Qwen3-30B 19.6, 24.9, 42.5, 65.1,
// 129, 156 (17.6, 27.2, 46.8, 76.1); 22.2, 31.3, 46.8, 71.8, 135, 162. At 8 tokens that is 1.01 and
// 1.02 of what both products take alone.
#include "kernels/fused_moe/best_parts.h"
#include "kernels/moe_align/launches.h"

namespace moegate::fused_moe {
namespace {

void launch(FusedMoe& problem, const Launch& where) {
  launch_best_parts(problem, moe_gemm::tiles::tile_of, where);
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const FusedMoeShape shape = FusedMoeShape::of(c);
  for (const moe_gemm::MoeGemmShape& product : {shape.gate_up(), shape.down()}) {
    const std::string why = tuned_unsupported(product, c, device);
    if (!why.empty()) return why;
  }
  return moe_align::redundant_count_unsupported(shape.rows());
}

const Kernel<FusedMoe> kernel({
    .name = "chain_tuned",
    .backend = Backend::cuda,
    .help = "redundant_count, both products tuned (suites/tiles), fused quantisation, sum",
    .launch = launch,
    .workspace = workspace,
    .unsupported = unsupported,
    .path = [](const Case& c, const DeviceFacts& device) -> std::string {
      const FusedMoeShape shape = FusedMoeShape::of(c);
      return moe_gemm::tiles::tile_of(shape.gate_up(), c, device).path + "; " +
             moe_gemm::tiles::tile_of(shape.down(), c, device).path;
    },
    .tolerance = FusedMoe::kOtherSums,
    .between = FusedMoe::kSumsRounded,
});

}  // namespace
}  // namespace moegate::fused_moe
