// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
#include "kernels/fused_moe/sorted_parts.h"

#include "kernels/cuda/with_rows.cuh"
#include "kernels/fused_moe/activations.cuh"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/prefill/launch.cuh"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate::fused_moe {
namespace {

FusedMoeShape in_large_blocks(FusedMoeShape shape) {
  shape.block = prefill::kTokens;
  return shape;
}

void launch_activations(const SortedLayer& layer, const Launch& where) {
  const moe_gemm::MoeGemmArgs product = gate_up(layer.args, layer.buffers);
  const moe_gemm::MoeGemmShape down = layer.args.shape.down();
  const Activations out{matrix_map(layer.buffers.q, down.capacity(), down.k, prefill::kHalfTokens),
                        layer.buffers.scales, layer.buffers.places};
  with_rows<1, 2>(prefill::usual_cluster(product.shape, false), [&]<int kCluster>() {
    prefill::launch_kernel<prefill::Order::tokens, kCluster>(product, out, Start::early, where);
  });
}

size_t sorted_workspace(const Case& c, const DeviceFacts&) {
  return buffer_bytes(in_large_blocks(FusedMoeShape::of(c)), FusedMoe::input_of(c),
                      RowOrder::sorted);
}

std::string sorted_path(const Case& c, const DeviceFacts&) {
  const FusedMoeShape shape = in_large_blocks(FusedMoeShape::of(c));
  return fmt::format("block={}; clusters of {} and {}", shape.block,
                     prefill::usual_cluster(shape.gate_up(), false),
                     prefill::usual_cluster(shape.down(), true));
}

}  // namespace

std::string sorted_unsupported(const Case& c, const DeviceFacts&) {
  const FusedMoeShape shape = in_large_blocks(FusedMoeShape::of(c));
  for (const moe_gemm::MoeGemmShape& product : {shape.gate_up(), shape.down()}) {
    const std::string why = prefill::unsupported(product);
    if (!why.empty()) return why;
  }
  return moe_align::redundant_count_unsupported(shape.rows());
}

SortedLayer launch_up_to_codes(FusedMoe& problem, const Launch& where) {
  const FusedMoeShape shape = in_large_blocks(problem.shape);
  const Buffers buffers = buffers_at(shape, problem.input, problem.workspace(), RowOrder::sorted);
  FusedMoeArgs args = quantise_input(problem, buffers, silu_mul_quant::launch_group_quant, where);
  args.shape = shape;
  const SortedLayer layer{args, buffers};
  moe_align::launch_redundant_count(align(args, layer.buffers), where);
  launch_activations(layer, where);
  return layer;
}

KernelSpec<FusedMoe> sorted_chain(const char* name, const char* help,
                                  void (*launch)(FusedMoe&, const Launch&)) {
  return {
      .name = name,
      .backend = Backend::cuda,
      .help = help,
      .launch = launch,
      .workspace = sorted_workspace,
      .unsupported = sorted_unsupported,
      .path = sorted_path,
      .tolerance = FusedMoe::kOtherSums,
      .between = FusedMoe::kSumsRounded,
  };
}

}  // namespace moegate::fused_moe
