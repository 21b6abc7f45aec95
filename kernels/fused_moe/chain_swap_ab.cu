// SPDX-License-Identifier: Apache-2.0
// The layer as a chain of the best kernel of each part, five launches: redundant_count, swap_ab
// (gate-up with K split where its tiles are few), the fused activation and quantisation, swap_ab,
// sum_vectorised.
//
// Floor: the weights of the experts that have rows, once; behind that five launches, each of which
// waits for the last block of the one before.
#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/launches.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate {
namespace {

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const layer::Buffers buffers = layer::buffers_at(args.shape, problem.workspace());
  align::launch_redundant_count(layer::align(args, buffers), where);
  gemm::launch_swap_ab(layer::gate_up(args, buffers), gemm::SplitK::where_tiles_are_few, where);
  silu::launch_fused(layer::quantise(args, buffers), where);
  gemm::launch_swap_ab(layer::down(args, buffers), gemm::SplitK::never, where);
  sum::launch_vectorised(layer::sum(args, buffers), where);
}

const Kernel<FusedMoe> kernel({
    .name = "chain_swap_ab",
    .backend = Backend::cuda,
    .help = "redundant_count, swap_ab (split K for few tiles), fused quantisation, swap_ab, sum",
    .launch = launch,
    .workspace = layer::workspace,
    .unsupported =
        [](const Case& c, const DeviceFacts&) {
          return align::redundant_count_unsupported(FusedMoeShape::of(c).rows());
        },
    .tolerance = FusedMoe::kOtherCodes,
});

}  // namespace
}  // namespace moegate
