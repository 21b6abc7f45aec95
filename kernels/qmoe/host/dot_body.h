// SPDX-License-Identifier: Apache-2.0
// The inner loops of the host variants, written once for vectors V of an instruction set. Each
// dot_<isa>.cc defines its V in an unnamed namespace and includes this file below a target
// pragma: whatever is instantiated here belongs to that file alone. For the same reason nothing of
// the standard library is used, whose instantiations files share.
//
// A weight is (q - 8) * s, exact in fp32, so scale factors are applied while decoding.
#pragma once

#include "kernels/qmoe/host/dot.h"

namespace moegate::qmoe::host {

template <class V>
void widen_row(const Operands& operands, int row) {
  const QmoeShape& shape = operands.args.shape;
  const int half = shape.k / 2, pitch = half_pitch(shape);
  const uint16_t* from = operands.args.x + int64_t{row} * shape.k;
  float* even = operands.x + int64_t{row} * 2 * pitch;
  float* odd = even + pitch;
  const auto step = [&](const uint16_t* pairs, int i) {
    const auto wide = V::widen_pairs(shape.dtype, pairs);
    V::store(even + i, wide.even);
    V::store(odd + i, wide.odd);
  };
  int i = 0;
  for (; i + V::kWidth <= half; i += V::kWidth) step(from + 2 * i, i);
  if (i == half) return;
  uint16_t tail[2 * V::kWidth] = {};
  __builtin_memcpy(tail, from + 2 * i, static_cast<size_t>(half - i) * 2 * sizeof(uint16_t));
  step(tail, i);
}

/// Dot products of C columns and M rows: every byte of codes is decoded once for M rows, every
/// activation loaded once for C columns.
template <class V, int C, int M>
void multiply_tile(const Operands& operands, const Panel& panel, int row, int column, float* sums) {
  using Float = typename V::Float;
  const QmoeArgs& args = operands.args;
  const QmoeShape& shape = args.shape;
  const int pitch = half_pitch(shape), column_bytes = shape.k / 2, group_bytes = shape.block / 2;
  const int64_t first = int64_t{args.row_expert[row]} * shape.n + column;
  const uint8_t* codes = args.weights + first * column_bytes;
  const uint16_t* scales = args.scales + first * shape.groups();
  const float* x[M];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) x[m] = operands.x + int64_t{args.row_source[row + m]} * 2 * pitch;

  Float sum[C][M] = {};
  typename V::Decoder decoder[C];
  const auto step = [&](int c, const uint8_t* bytes, int i) {
    const auto weight = decoder[c].decode(bytes);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      sum[c][m] = V::fma(weight.even, V::load(x[m] + i), sum[c][m]);
      sum[c][m] = V::fma(weight.odd, V::load(x[m] + pitch + i), sum[c][m]);
    }
  };
  int group = panel.first_byte / group_bytes;
  for (int i = panel.first_byte; i < panel.end_byte; ++group) {
    const int group_end = (group + 1) * group_bytes;
    const int end = group_end < panel.end_byte ? group_end : panel.end_byte;
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      decoder[c].scale_by(V::widen(shape.dtype, scales + c * shape.groups() + group));
    }
    for (; i + V::kWidth <= end; i += V::kWidth) {
      if (i % 64 == 0) {
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) __builtin_prefetch(codes + int64_t{C + c} * column_bytes + i);
      }
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) step(c, codes + int64_t{c} * column_bytes + i, i);
    }
    if (i == end) continue;
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {  // the activations beyond K are zero
      uint8_t tail[V::kWidth] = {};
      __builtin_memcpy(tail, codes + int64_t{c} * column_bytes + i, static_cast<size_t>(end - i));
      step(c, tail, i);
    }
    i = end;
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sums[m * panel.columns + c] = V::sum(sum[c][m]);
  }
}

/// M rows. Wide tiles read the codes in long stretches; at most as many accumulators as registers
/// hold beside the weights.
template <class V, int M>
void multiply_rows(const Operands& operands, const Panel& panel, int row, float* sums) {
  constexpr int kFit = V::kAccumulators / (M == 3 ? 4 : M);
  constexpr int kColumns = kFit < 8 ? kFit : 8;
  int c = 0;
  for (; c + kColumns <= panel.columns; c += kColumns) {
    multiply_tile<V, kColumns, M>(operands, panel, row, panel.first_column + c, sums + c);
  }
  for (; c < panel.columns; ++c) {
    multiply_tile<V, 1, M>(operands, panel, row, panel.first_column + c, sums + c);
  }
}

template <class V>
void multiply(const Operands& operands, const Panel& panel, float* sums) {
  for (int done = 0; done < panel.rows;) {
    const int row = panel.first_row + done;
    float* to = sums + done * panel.columns;
    switch (panel.rows - done) {
      case 1:
        multiply_rows<V, 1>(operands, panel, row, to);
        return;
      case 2:
        multiply_rows<V, 2>(operands, panel, row, to);
        return;
      case 3:
        multiply_rows<V, 3>(operands, panel, row, to);
        return;
      default:
        multiply_rows<V, 4>(operands, panel, row, to);
        done += 4;
    }
  }
}

}  // namespace moegate::qmoe::host
