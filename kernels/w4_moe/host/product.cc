// SPDX-License-Identifier: Apache-2.0
#include "kernels/w4_moe/host/product.h"

#include <algorithm>

namespace moegate::w4_moe::host {
namespace {

Panel panel_at(const W4Args& args, int32_t expert, int column) {
  const W4Shape& shape = args.shape;
  const int64_t row = int64_t{expert} * shape.n + column;
  const int64_t scale_bytes = shape.weights == W4Weights::int4 ? 2 : 1;
  Panel panel;
  panel.rows = 0;
  panel.columns = std::min(kPanelColumns, shape.n - column);
  panel.codes = args.codes + row * shape.k / 2;
  panel.scales = static_cast<const uint8_t*>(args.scales) + row * shape.groups() * scale_bytes;
  panel.bias = args.bias ? args.bias + row : nullptr;
  panel.first_output = shape.down ? column : column / 2;
  return panel;
}

}  // namespace

std::span<const Isa* const> isas() {
  static const moegate::host::Isas<Isa, 4> present({&kAvx512Bf16, &kAvx512, &kAvx2, &kPortable});
  return present.best_first();
}

void widen(const Operands& operands) {
  const W4Shape& shape = operands.args.shape;
#pragma omp for schedule(static)
  for (int row = 0; row < shape.source_rows(); ++row) {
    operands.isa.widen(operands.args.x + int64_t{row} * shape.k, shape.k,
                       operands.x + int64_t{row} * pitch(shape));
  }
}

void multiply_blocks(const Operands& operands, int first, int end, int column) {
  const W4Args& args = operands.args;
  const W4Shape& shape = args.shape;
  Panel panel = panel_at(args, args.expert_ids[first], column);
  const auto work = [&] {
    float sums[kPanelRows * kPanelColumns];
    operands.isa.multiply(shape, panel, sums);
    operands.isa.finish(args, panel, sums);
    panel.rows = 0;
  };
  for (int i = first * shape.block; i < end * shape.block; ++i) {
    const int32_t r = args.sorted_token_ids[i];
    if (r == shape.rows()) continue;  // padding
    panel.ids[panel.rows] = r;
    panel.x[panel.rows] = operands.x + int64_t{shape.source(r)} * pitch(shape);
    if (++panel.rows == kPanelRows) work();
  }
  if (panel.rows > 0) work();
}

}  // namespace moegate::w4_moe::host
