// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (moe_align by clusters)
// The layer as a chain of the best kernel of each part, both products as `moegate tune` found them
// fastest for the shape and the nearest token count (suites/tiles), which share one block of rows.
// Ask for block = tuned: with another block than the file's there is no tuned layer.
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
