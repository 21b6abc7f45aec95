// SPDX-License-Identifier: Apache-2.0
// The layer as a chain of the best kernel of each part, five launches: redundant_count, swap_ab
// (cut by its own rule), the fused activation and quantisation, swap_ab, sum_vectorised.
//
// Floor: the weights of the experts that have rows, once; behind that five launches, each of which
// waits for the last block of the one before.
#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/tile.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate {
namespace {

void multiply(const MoeGemmArgs& args, const Launch& where) {
  usual_tile("swap_ab", args.shape, where.device).launch(args, nullptr, where);
}

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const layer::Buffers buffers = layer::buffers_at(args.shape, problem.workspace());
  align::launch_redundant_count(layer::align(args, buffers), where);
  multiply(layer::gate_up(args, buffers), where);
  silu::launch_fused(layer::quantise(args, buffers), where);
  multiply(layer::down(args, buffers), where);
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
    .tolerance = FusedMoe::kOtherSums,
});

}  // namespace
}  // namespace moegate
