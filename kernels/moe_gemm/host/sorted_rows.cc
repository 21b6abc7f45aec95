// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU in the structure of SGLang PR 10567: activations lie densely in
// sorted order, so that a block's rows are neighbours, and a tile has one scale factor per group of
// K. Widening puts them there, which every variant does anyway.
//
// Measured against `gather` (same runs as stated there): no difference, 0.94 to 1.02 and 0.88
// to 1.02 of its speed in gate_up, 0.98 to 1.04 and 0.97 to 1.01 in down, T = 1 and 16. Both read
// weights as fast as memory gives them, so neither the order of the rows nor a multiplication less
// shows.
#include "kernels/moe_gemm/host/kernel.h"

namespace moegate::moe_gemm::host {
namespace {

/// Widened activations by their place in sorted_token_ids; those of padding are never written.
size_t widened_capacity(const MoeGemmShape& shape) {
  return sizeof(float) * static_cast<size_t>(shape.capacity()) * static_cast<size_t>(pitch(shape));
}

void widen_sorted_rows(const Operands& operands) {
  const MoeGemmArgs& args = operands.args;
  const MoeGemmShape& shape = args.shape;
  const auto row_bytes = shape.k * static_cast<int64_t>(size_of(shape.dtype));
#pragma omp for schedule(static)
  for (int i = 0; i < *args.padded_rows; ++i) {
    const int32_t r = args.sorted_token_ids[i];
    if (r >= shape.rows()) continue;
    operands.isa.widen(shape.dtype, static_cast<const char*>(args.x) + shape.source(r) * row_bytes,
                       shape.k, operands.x + int64_t{i} * pitch(shape));
  }
}

void launch(const MoeGemmArgs& args, void* workspace, const Launch&) {
  launch_panels({args, best_isa(), static_cast<float*>(workspace), /*sorted=*/true},
                Scaling::per_tile, widen_sorted_rows);
}

const HostKernel<launch, widened_capacity> kernel(
    "sorted_rows", "dense sorted rows, one scale factor per tile and group of K (SGLang PR 10567)");

}  // namespace
}  // namespace moegate::moe_gemm::host
