// SPDX-License-Identifier: Apache-2.0
// The layer as the public Triton fused MoE chains it: moe_align in two launches (one for small
// batches of few experts, by upstream's own rule), both products as `gather`, activation and
// quantisation as two kernels, the sum a block per token. Six or seven launches.
#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/tiles/tile.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate {
namespace {

bool aligns_in_one_block(const FusedMoeShape& shape) {
  return shape.rows() < 1024 && shape.experts <= 64;
}

void multiply(const MoeGemmArgs& args, const Launch& where) {
  usual_tile("gather", args.shape, where.device).launch(args, nullptr, where);
}

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const layer::Buffers buffers = layer::buffers_at(args.shape, problem.workspace());
  if (aligns_in_one_block(args.shape)) {
    align::launch_one_block(layer::align(args, buffers), where);
  } else {
    align::launch_count_scan_scatter(layer::align(args, buffers), buffers.next, where);
  }
  multiply(layer::gate_up(args, buffers), where);
  silu::launch_two_kernels(layer::quantise(args, buffers), buffers.act, where);
  multiply(layer::down(args, buffers), where);
  sum::launch_per_token(layer::sum(args, buffers), where);
}

const Kernel<FusedMoe> kernel({
    .name = "chain_gather",
    .backend = Backend::cuda,
    .help = "the public Triton layer's launches: align, gather, silu, quantise, gather, sum",
    .launch = launch,
    .workspace = layer::workspace,
    .path = [](const Case& c, const DeviceFacts&) -> std::string {
      return aligns_in_one_block(FusedMoeShape::of(c)) ? "align: one_block"
                                                       : "align: count_scan_scatter";
    },
    .tolerance = FusedMoe::kOtherCodes,
});

}  // namespace
}  // namespace moegate
