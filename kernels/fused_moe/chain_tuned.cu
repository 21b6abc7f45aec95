// SPDX-License-Identifier: Apache-2.0
// The layer as a chain of the best kernel of each part, both products as `moegate tune` found them
// fastest for the shape and the nearest token count (suites/tiles), which share one block of rows.
// Ask for block = tuned: with another block than the file's there is no tuned layer.
#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/tile.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate {
namespace {

void multiply(const MoeGemmArgs& args, const Launch& where) {
  tile_of(args.shape, where.device).launch(args, nullptr, where);
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

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const FusedMoeShape shape = FusedMoeShape::of(c);
  for (const MoeGemmShape& product : {shape.gate_up(), shape.down()}) {
    const std::string why = layer::tuned_unsupported(product, device);
    if (!why.empty()) return why;
  }
  return align::redundant_count_unsupported(shape.rows());
}

const Kernel<FusedMoe> kernel({
    .name = "chain_tuned",
    .backend = Backend::cuda,
    .help = "redundant_count, both products tuned (suites/tiles), fused quantisation, sum",
    .launch = launch,
    .workspace = layer::workspace,
    .unsupported = unsupported,
    .path = [](const Case& c, const DeviceFacts& device) -> std::string {
      const FusedMoeShape shape = FusedMoeShape::of(c);
      return tile_of(shape.gate_up(), device).path + "; " + tile_of(shape.down(), device).path;
    },
    .tolerance = FusedMoe::kOtherSums,
});

}  // namespace
}  // namespace moegate
