// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/host/dot.h"

#include <algorithm>
#include <cmath>

namespace moegate::qmoe::host {
namespace {

float narrow_to_float(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

uint16_t float_to_narrow(DType dtype, float value) {
  return dtype == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
}

float swiglu(const QmoeShape& shape, float gate, float up) {
  gate = std::min(gate, shape.limit);
  up = std::clamp(up, -shape.limit, shape.limit);
  return gate / (1 + std::exp(-shape.alpha * gate)) * (up + shape.beta);
}

}  // namespace

std::span<const Isa* const> isas() {
  static const moegate::host::Isas<Isa> present(kPortable, kAvx2, kAvx512);
  return present.best_first();
}

Panel panel_of(const QmoeShape& shape, int first_row, int rows, int first_column) {
  return {.first_row = first_row,
          .rows = rows,
          .first_column = first_column,
          .columns = std::min(kPanelColumns, shape.n - first_column),
          .first_byte = 0,
          .end_byte = shape.k / 2};
}

int half_pitch(const QmoeShape& shape) {
  return moegate::host::whole_vectors(shape.k / 2);
}

size_t widened_bytes(const QmoeShape& shape) {
  return static_cast<size_t>(shape.source_rows()) * 2 * static_cast<size_t>(half_pitch(shape)) *
         sizeof(float);
}

void widen(const Isa& isa, const Operands& operands) {
#pragma omp for schedule(static)
  for (int row = 0; row < operands.args.shape.source_rows(); ++row) isa.widen(operands, row);
}

void finish(const QmoeArgs& args, const Panel& panel, const float* sums) {
  const QmoeShape& shape = args.shape;
  for (int row = panel.first_row; row < panel.first_row + panel.rows; ++row) {
    const int64_t first = int64_t{args.row_expert[row]} * shape.n + panel.first_column;
    const auto column = [&](int c) {
      return args.bias ? sums[c] + narrow_to_float(shape.dtype, args.bias[first + c]) : sums[c];
    };
    const int per_output = shape.swiglu ? 2 : 1;
    uint16_t* out = args.out + int64_t{row} * shape.outputs() + panel.first_column / per_output;
    for (int j = 0; j < panel.columns / per_output; ++j) {
      const float value =
          shape.swiglu ? swiglu(shape, column(2 * j), column(2 * j + 1)) : column(j);
      out[j] = float_to_narrow(shape.dtype, value);
    }
    sums += panel.columns;
  }
}

int find_runs(const QmoeArgs& args, int32_t* starts) {
  const int rows = args.shape.rows();
  int runs = 0;
  for (int row = 0; row < rows; ++row) {
    const bool continues = row > 0 && args.row_expert[row] == args.row_expert[row - 1] &&
                           row - starts[runs - 1] < kMaxRows;
    if (!continues) starts[runs++] = row;
  }
  starts[runs] = rows;
  return runs;
}

void multiply_run(const Isa& isa, const Operands& operands, const int32_t* start, int column) {
  const Panel panel = panel_of(operands.args.shape, start[0], start[1] - start[0], column);
  float sums[kMaxRows * kPanelColumns];
  isa.multiply(operands, panel, sums);
  finish(operands.args, panel, sums);
}

void launch_single(const Isa& isa, const Operands& operands) {
  const QmoeShape& shape = operands.args.shape;
#pragma omp parallel
  {
    widen(isa, operands);
#pragma omp for schedule(static) collapse(2)
    for (int row = 0; row < shape.rows(); ++row) {
      for (int column = 0; column < shape.n; column += kPanelColumns) {
        const Panel panel = panel_of(shape, row, 1, column);
        float sums[kPanelColumns];
        isa.multiply(operands, panel, sums);
        finish(operands.args, panel, sums);
      }
    }
  }
}

}  // namespace moegate::qmoe::host
