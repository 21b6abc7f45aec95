// SPDX-License-Identifier: Apache-2.0
// How a panel is cut into tiles, written once for the loops T of an instruction set. Included below
// a target pragma, as product_body.h. T has:
//   kColumns, kColumnsOfFewRows  columns of a tile, and those of one of one row or two
//   tile<kWeights, C, M>()       writes the dot products of C columns and M rows
#pragma once

#include "kernels/w4_moe/host/product.h"

namespace moegate::w4_moe::host {

/// The sums of a tile's vectors from vector kFirst on; their bits do not depend on the tile.
template <class V, int C, int M, int kFirst = 0>
__attribute__((always_inline)) inline void write_sums(const typename V::Float (&vectors)[C][M],
                                                      int columns, float* sums) {
  const auto vector = [&]<int I>() __attribute__((always_inline)) {
    if constexpr (I < C * M) {
      return vectors[I % C][I / C];
    } else {
      return typename V::Float{};
    }
  };
  float four[4];
  V::sums(vector.template operator()<kFirst>(), vector.template operator()<kFirst + 1>(),
          vector.template operator()<kFirst + 2>(), vector.template operator()<kFirst + 3>(), four);
#pragma GCC unroll 4
  for (int i = kFirst; i < kFirst + 4 && i < C * M; ++i) {
    sums[i / C * columns + i % C] = four[i - kFirst];
  }
  if constexpr (kFirst + 4 < C * M) write_sums<V, C, M, kFirst + 4>(vectors, columns, sums);
}

/// C columns, all rows.
template <class T, W4Weights kWeights, int C>
void multiply_columns(const W4Shape& shape, const Panel& panel, int column, float* sums) {
  int row = 0;
  const auto tile = [&]<int M>() {
    T::template tile<kWeights, C, M>(shape, panel, row, column, sums + row * panel.columns);
    row += M;
  };
  while (row + 4 <= panel.rows) tile.template operator()<4>();
  if (panel.rows - row == 3) return tile.template operator()<3>();
  if (panel.rows - row == 2) return tile.template operator()<2>();
  if (panel.rows - row == 1) tile.template operator()<1>();
}

template <class T, W4Weights kWeights>
void multiply_panel(const W4Shape& shape, const Panel& panel, float* sums) {
  int c = 0;
  const auto columns = [&]<int C>() {
    for (; c + C <= panel.columns; c += C) {
      multiply_columns<T, kWeights, C>(shape, panel, c, sums + c);
    }
  };
  if (panel.rows <= 2) columns.template operator()<T::kColumnsOfFewRows>();
  columns.template operator()<T::kColumns>();
  columns.template operator()<1>();
}

template <class T>
void multiply(const W4Shape& shape, const Panel& panel, float* sums) {
  if (shape.weights == W4Weights::int4) {
    multiply_panel<T, W4Weights::int4>(shape, panel, sums);
  } else {
    multiply_panel<T, W4Weights::mxfp4>(shape, panel, sums);
  }
}

/// Bias, SwiGLU or routing weight, and rounding of a panel's dot products. The compiler makes
/// vectors of these loops. T keeps them in this file.
template <class T>
void finish(const W4Args& args, const Panel& panel, const float* sums) {
  const W4Shape shape = args.shape;
  float bias[kPanelColumns] = {};
  for (int c = 0; panel.bias && c < panel.columns; ++c) bias[c] = bf16_to_float(panel.bias[c]);
  for (int i = 0; i < panel.rows; ++i, sums += panel.columns) {
    const int32_t r = panel.ids[i];
    uint16_t* out = args.out + int64_t{r} * shape.outputs() + panel.first_output;
    if (shape.down) {
      const float weight = args.routing_weights[r];
#pragma omp simd
      for (int c = 0; c < panel.columns; ++c) out[c] = float_to_bf16(weight * (sums[c] + bias[c]));
    } else {
#pragma omp simd
      for (int j = 0; j < panel.columns / 2; ++j) {
        const float gate = sums[2 * j] + bias[2 * j], up = sums[2 * j + 1] + bias[2 * j + 1];
        out[j] = float_to_bf16(swiglu(shape, gate, up));
      }
    }
  }
}

}  // namespace moegate::w4_moe::host
