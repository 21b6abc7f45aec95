// SPDX-License-Identifier: Apache-2.0
// What kernels share that take weights from memory straight into registers: a unit times rows of x
// in shared memory by mma.sync, and the way of a panel's sums to the output.
#pragma once

#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {

using namespace cuda;

/// Bytes from a row of x to the next: 16 more than whole lines, so that the rows of a matrix that
/// ldmatrix reads lie in different banks.
MOEGATE_HD inline int pitch(const W4Shape& shape) {
  return units_of(shape) * kUnitK * 2 + 16;
}

/// `x`: where this lane's rows of matrices begin.
template <int kTiles, bool kWide, class W>
__device__ void multiply_unit(const Unit<W>& unit, uint32_t x, int row_bytes, int tiles,
                              float (&sums)[kTiles][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t scales[2], a[2][4];
    W::template scales_of<kWide>(unit.scales, half, scales);
    W::template decode<kWide>(half ? unit.codes.z : unit.codes.x, scales, a[0]);
    W::template decode<kWide>(half ? unit.codes.w : unit.codes.y, scales, a[1]);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      if (j >= tiles) break;
      uint32_t b[4];
      load_matrices(x + j * 8 * row_bytes + half * 64, b);
      multiply(sums[j], a[0], b[0], b[1]);
      multiply(sums[j], a[1], b[2], b[3]);
    }
  }
}

/// Likewise, of int4: sums of a group, or of a unit's part of one, are scaled in fp32. That is
/// exact, and up to 16 rows takes no more instructions than scaling weights.
template <int kTiles, class W>
__device__ void multiply_groups(const Unit<W>& unit, uint32_t x, int row_bytes, int tiles,
                                float (&sums)[kTiles][4]) {
  constexpr int kSteps = kUnitK / 16 / W::kGroups;
  const uint32_t words[] = {unit.codes.x, unit.codes.y, unit.codes.z, unit.codes.w};
#pragma unroll
  for (int group = 0; group < W::kGroups; ++group) {
    uint32_t a[kSteps][4];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) W::decode_unscaled(words[group * kSteps + i], a[i]);
    const uint32_t scales = W::word_of(unit.scales, group);
    const float low = bits_float(scales << 16), high = bits_float(scales & 0xffff0000u);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      if (j >= tiles) break;
      float of_group[4] = {};
#pragma unroll
      for (int i = 0; i < kSteps; i += 2) {
        uint32_t b[4];
        load_matrices(x + j * 8 * row_bytes + (group * kSteps + i) * 32, b);
        multiply(of_group, a[i], b[0], b[1]);
        multiply(of_group, a[i + 1], b[2], b[3]);
      }
      sums[j][0] += low * of_group[0];
      sums[j][1] += low * of_group[1];
      sums[j][2] += high * of_group[2];
      sums[j][3] += high * of_group[3];
    }
  }
}

/// What a block works on, the same in all of its threads.
struct Work {
  const int32_t* ids;    // of its rows, in shared memory
  const float* weights;  // of the routing, there, too
  int rows, expert;
};

/// The biases of rows g and g + 8 of a panel.
struct Biases {
  float low, high;
};

template <class W>
__device__ Biases load_biases(const W4Args& args, int expert, int panel) {
  const W4Shape& shape = args.shape;
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const auto bias = [&](int i) {
    const int row = weight_row(shape, panel, i);
    return has_bias<W>(args, row)
               ? bf16_to_float(__ldg(args.bias + int64_t{expert} * shape.n + row))
               : 0.0f;
  };
  return {bias(g), bias(g + 8)};
}

/// Writes a panel's columns of the output.
template <int kTiles>
__device__ void write_panel(const W4Args& args, const Work& work, const Biases& biases, int panel,
                            const float (&sums)[kTiles][4]) {
  const W4Shape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = weight_row(shape, panel, lane / 4);
  const int row_8 = weight_row(shape, panel, lane / 4 + 8);
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const float low = sums[j][odd] + biases.low, high = sums[j][odd + 2] + biases.high;
      const int token = j * 8 + lane % 4 * 2 + odd;
      if (token >= work.rows) continue;
      uint16_t* out = args.out + int64_t{work.ids[token]} * shape.outputs();
      if (!shape.down) {
        if (row < shape.n) out[row / 2] = float_to_bf16(swiglu(shape, low, high));
        continue;
      }
      if (row < shape.n) out[row] = float_to_bf16(work.weights[token] * low);
      if (row_8 < shape.n) out[row_8] = float_to_bf16(work.weights[token] * high);
    }
  }
}

}  // namespace moegate::w4_moe
