// SPDX-License-Identifier: Apache-2.0
// The layer on the CPU as the plain variants of its parts, one after the other: counting_sort,
// gather, the fused quantisation (no rounding to bf16 that the definition lacks), gather,
// per_token. The operator's yardstick.
#include <algorithm>

#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/host_align.h"
#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_sum/host_sum.h"
#include "kernels/silu_mul_quant/host_silu.h"

namespace moegate::fused_moe {
namespace {

using moe_gemm::host::best_isa;
using moe_gemm::host::widened_bytes;

/// Behind the layer's buffers the widened rows of one product at a time.
size_t workspace(const Case& c, const DeviceFacts&) {
  const auto shape = FusedMoeShape::of(c);
  return buffer_bytes(shape, FusedMoe::input_of(c)) +
         std::max(widened_bytes(shape.gate_up()), widened_bytes(shape.down()));
}

void launch(FusedMoe& problem, const Launch&) {
  const Buffers buffers = buffers_at(problem.shape, problem.input, problem.workspace());
  const FusedMoeArgs args = quantise_input(problem, buffers, silu_mul_quant::run_group_quant);
  auto* widened = reinterpret_cast<float*>(buffers.end);
  moe_align::run_counting_sort(align(args, buffers), buffers.next);
  moe_gemm::host::launch_panels({gate_up(args, buffers), best_isa(), widened});
  silu_mul_quant::run_fused(quantise(args, buffers));
  std::fill_n(buffers.y, elements_to_clear(problem), uint16_t{0});
  moe_gemm::host::launch_panels({down(args, buffers), best_isa(), widened});
  moe_sum::run_per_token(sum(args, buffers));
}

const Kernel<FusedMoe> kernel({
    .name = "chain",
    .backend = Backend::host,
    .help = "counting_sort, gather, fused quantisation, gather, per_token",
    .launch = launch,
    .workspace = workspace,
    .path = [](const Case&, const DeviceFacts&) -> std::string { return best_isa().name; },
});

}  // namespace
}  // namespace moegate::fused_moe
