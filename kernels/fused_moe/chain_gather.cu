// SPDX-License-Identifier: Apache-2.0
// The layer as the public Triton fused MoE chains it: moe_align in two launches (one for small
// batches of few experts, by upstream's own rule), both products as `gather`, activation and
// quantisation as two kernels, the sum a block per token. Six or seven launches.
#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/gather/zero_output.h"
#include "kernels/moe_gemm/tiles/tile.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate::fused_moe {
namespace {

bool aligns_in_one_block(const FusedMoeShape& shape) {
  return shape.rows() < 1024 && shape.experts <= 64;
}

void multiply(const moe_gemm::MoeGemmArgs& args, const Launch& where) {
  moe_gemm::tiles::usual_tile("gather", args.shape, where.device).launch(args, nullptr, where);
}

void launch(FusedMoe& problem, const Launch& where) {
  const Buffers buffers = buffers_at(problem.shape, problem.input, problem.workspace());
  const FusedMoeArgs args =
      quantise_input(problem, buffers, silu_mul_quant::launch_group_quant, where);
  if (const int64_t elements = elements_to_clear(problem); elements > 0)
    moe_gemm::gather::zero_output(buffers.y, elements, where.stream);
  if (aligns_in_one_block(args.shape)) {
    moe_align::launch_one_block(align(args, buffers), where);
  } else {
    moe_align::launch_count_scan_scatter(align(args, buffers), buffers.next, where);
  }
  multiply(gate_up(args, buffers), where);
  silu_mul_quant::launch_two_kernels(quantise(args, buffers), buffers.act, where);
  multiply(down(args, buffers), where);
  moe_sum::launch_per_token(sum(args, buffers), where);
}

const Kernel<FusedMoe> kernel({
    .name = "chain_gather",
    .backend = Backend::cuda,
    .help = "the public Triton layer's launches: align, gather, silu, quantise, gather, sum",
    .launch = launch,
    .workspace = workspace,
    .path = [](const Case& c, const DeviceFacts&) -> std::string {
      return aligns_in_one_block(FusedMoeShape::of(c)) ? "align: one_block"
                                                       : "align: count_scan_scatter";
    },
    .tolerance = FusedMoe::kOtherCodes,
    .between = FusedMoe::kCodesRounded,
});

}  // namespace
}  // namespace moegate::fused_moe
