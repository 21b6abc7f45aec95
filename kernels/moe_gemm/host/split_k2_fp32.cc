// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU with K cut as in `split_k2`, but without its roundings: both chunks'
// products go to fp32 scratch memory, and a second pass adds them and rounds once.
//
// Loses to `gather` (same runs as stated there): 1.45 and 1.8 x its time in gate_up, T = 1 and
// 16, 1.82 and 1.75 x in down. Weights are read in pieces of 128 bytes as in `split_k2`, but in one
// sweep over the panels; the partial products are cold memory of four times the output's size.
#include "kernels/moe_gemm/host/kernel.h"

namespace moegate::moe_gemm::host {
namespace {

constexpr int kSplits = 2;

/// Widened activations, then the partial products [2, R, N].
size_t workspace_bytes(const MoeGemmShape& shape) {
  return widened_bytes(shape) +
         sizeof(float) * kSplits * static_cast<size_t>(shape.rows()) * static_cast<size_t>(shape.n);
}

void multiply_chunks(const Operands& operands, float* partials) {
  const MoeGemmShape& shape = operands.args.shape;
  for_panels(operands, [&](Panel panel) {
    for (int split = 0; split < kSplits; ++split) {
      panel.groups = {split, kSplits};
      float sums[kPanelRows * kPanelColumns];
      multiply(operands, panel, Scaling::per_column, sums);
      for (int i = 0; i < panel.rows; ++i) {
        const int64_t row = int64_t{split} * shape.rows() + panel.ids[i];
        std::copy_n(sums + i * panel.columns, panel.columns,
                    partials + row * shape.n + panel.first_column);
      }
    }
  });
}

void add_chunks(const MoeGemmArgs& args, const float* partials) {
  const MoeGemmShape& shape = args.shape;
  const int64_t second = int64_t{shape.rows()} * shape.n;
#pragma omp for schedule(static)
  for (int r = 0; r < shape.rows(); ++r) {
    const float weight = routing_weight(args, r);
    const float* from = partials + int64_t{r} * shape.n;
    uint16_t* out = args.out + int64_t{r} * shape.n;
    for (int c = 0; c < shape.n; ++c) {
      out[c] = float_to_bf16(weight * (from[c] + from[c + second]));
    }
  }
}

void launch(const MoeGemmArgs& args, void* workspace, const Launch&) {
  const Operands operands = {args, best_isa(), static_cast<float*>(workspace)};
  float* partials = operands.x + widened_bytes(operands.args.shape) / sizeof(float);
#pragma omp parallel
  {
    widen_source_rows(operands);
    multiply_chunks(operands, partials);
    add_chunks(operands.args, partials);
  }
}

const HostKernel<launch, workspace_bytes> kernel(
    "split_k2_fp32", "two interleaved chunks of K as fp32 partial products, then their sum");

}  // namespace
}  // namespace moegate::moe_gemm::host
