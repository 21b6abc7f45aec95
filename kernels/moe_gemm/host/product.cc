// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {

std::span<const Isa* const> isas() {
  static const moegate::host::Isas<Isa> present(kPortable, kAvx2, kAvx512);
  return present.best_first();
}

int pitch(const MoeGemmShape& shape) {
  return moegate::host::whole_vectors(shape.k);
}

size_t widened_bytes(const MoeGemmShape& shape) {
  return sizeof(float) * static_cast<size_t>(shape.source_rows()) *
         static_cast<size_t>(pitch(shape));
}

void widen_source_rows(const Operands& operands) {
  const MoeGemmShape& shape = operands.args.shape;
  const auto row_bytes = shape.k * static_cast<int64_t>(size_of(shape.dtype));
#pragma omp for schedule(static)
  for (int row = 0; row < shape.source_rows(); ++row) {
    operands.isa.widen(shape.dtype, static_cast<const char*>(operands.args.x) + row * row_bytes,
                       shape.k, operands.x + int64_t{row} * pitch(shape));
  }
}

int rows_in_block(const MoeGemmArgs& args, int block) {
  const int32_t* first = args.sorted_token_ids + int64_t{block} * args.shape.block;
  int rows = 0;
  while (rows < args.shape.block && first[rows] < args.shape.rows()) ++rows;
  return rows;
}

Panel panel_at(const Operands& operands, int first, int rows, int first_column) {
  const MoeGemmArgs& args = operands.args;
  const MoeGemmShape& shape = args.shape;
  const int64_t expert = args.expert_ids[first / shape.block];
  const int64_t start = expert * shape.expert_elements() + int64_t{first_column} * shape.k;
  Panel panel;
  panel.expert = static_cast<int>(expert);
  panel.rows = rows;
  panel.first_column = first_column;
  panel.columns = std::min(kPanelColumns, shape.n - first_column);
  panel.weights =
      static_cast<const char*>(args.weights) + start * static_cast<int64_t>(size_of(shape.dtype));
  panel.weight_pitch = shape.k;
  const bool by_block = args.weight_scales && !shape.scaled_once();
  panel.weight_scales =
      by_block ? args.weight_scales + expert * shape.n_groups() * shape.k_groups() : nullptr;
  panel.k = shape.k;
  panel.dtype = shape.dtype;
  for (int i = 0; i < rows; ++i) {
    const int32_t r = args.sorted_token_ids[first + i];
    const int64_t source = shape.source(r);
    panel.ids[i] = r;
    panel.x[i] = operands.x + (operands.sorted ? first + i : source) * pitch(shape);
    panel.x_scales[i] = by_block ? args.x_scales + source * shape.k_groups() : nullptr;
  }
  return panel;
}

void multiply(const Operands& operands, const Panel& panel, Scaling scaling, float* sums) {
  const MoeGemmArgs& args = operands.args;
  operands.isa.multiply(panel, scaling, sums);
  const bool once = args.shape.scaled_once(), biased = args.shape.biased && panel.groups.first == 0;
  if (!once && !biased) return;
  for (int i = 0; i < panel.rows; ++i) {
    const float of_x = once ? *args.x_factor(panel.ids[i]) : 1;
    for (int c = 0; c < panel.columns; ++c) {
      float& sum = sums[i * panel.columns + c];
      const int column = panel.first_column + c;
      if (once) sum *= of_x * *args.weight_factor(panel.expert, column);
      if (biased) sum += bf16_to_float(*with_bias(args).bias_of(panel.expert, column));
    }
  }
}

void store(const MoeGemmArgs& args, const Panel& panel, const float* sums) {
  for (int i = 0; i < panel.rows; ++i) {
    const float weight = routing_weight(args, panel.ids[i]);
    uint16_t* out = args.out + int64_t{panel.ids[i]} * args.shape.n + panel.first_column;
    for (int c = 0; c < panel.columns; ++c) {
      out[c] = float_to_bf16(weight * sums[i * panel.columns + c]);
    }
  }
}

void launch_panels(const Operands& operands, Scaling scaling, void (*widen)(const Operands&)) {
#pragma omp parallel
  {
    widen(operands);
    for_panels(operands, [&](const Panel& panel) {
      float sums[kPanelRows * kPanelColumns];
      multiply(operands, panel, scaling, sums);
      store(operands.args, panel, sums);
    });
  }
}

}  // namespace moegate::moe_gemm::host
