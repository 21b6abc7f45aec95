// SPDX-License-Identifier: Apache-2.0
// What the tiled MXFP4 products share: rows of x through stages in shared memory, weights of a unit
// from memory, and the way of a tile's sums to the output.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {

constexpr int kLineBytes = kUnitK * 2;  // of a row of x in a stage

/// Columns of the output that a panel makes.
MOEGATE_HD inline int panel_columns(const W4Shape& shape) {
  return shape.down ? kPanelRows : kPanelRows / 2;
}

/// Where a piece of 16 bytes of a row lies in a stage: the same piece of eight rows lies in
/// different banks.
__device__ inline int piece_at(int row, int piece) {
  return row * kLineBytes + (piece ^ row % 8) * 16;
}

/// Copies of a thread's rows of x into stages: a piece of every (kThreads / 8)-th row.
template <int kRows, int kThreads>
struct RowCopies {
  static constexpr int kCopies = (kRows * 8 + kThreads - 1) / kThreads;
  uint32_t from[kCopies];  // where the piece of unit 0 is, in pieces of 8 elements
  uint32_t rows = 0;       // bit i: row i is no padding

  __device__ RowCopies(const W4Shape& shape, const int32_t* ids, int count) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = row_of(i), there = row < count;
      rows |= there << i;
      from[i] = there ? static_cast<uint32_t>(int64_t{shape.source(ids[row])} * shape.k / 8) +
                            threadIdx.x % 8
                      : 0;
    }
  }
  __device__ static int row_of(int i) {
    return static_cast<int>(threadIdx.x) / 8 + i * (kThreads / 8);
  }
  /// Rows of padding are left as they are: their products go nowhere.
  __device__ void start(const W4Args& args, int unit, uint32_t stage) const {
    const int piece = static_cast<int>(threadIdx.x) % 8;
    const bool there = unit * kUnitK + piece * 8 < args.shape.k;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if ((rows >> i & 1) == 0) continue;
      const uint16_t* x = args.x + (there ? int64_t{from[i] + unit * 8u} * 8 : 0);
      cuda::copy_async<16>(stage + piece_at(row_of(i), piece), x, there);
    }
  }
};

__device__ inline Unit load_unit(const uint8_t* unit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Unit u;
  u.codes = __ldg(reinterpret_cast<const uint4*>(unit + lane * 16));
  u.scales = __ldg(reinterpret_cast<const uint32_t*>(unit + kUnitCodes) + lane / 4);
  return u;
}

/// Elements from a token's outputs to the next token's in shared memory, of a tile with so many
/// panels.
MOEGATE_HD inline int out_pitch(const W4Shape& shape, int panels) {
  return panels * panel_columns(shape) + 8;
}

/// The sums of a panel, rows g and g + 8 of it (low, high) of a token, as outputs [token, column]
/// in shared memory.
struct PanelOut {
  const W4Shape& shape;
  uint16_t* tile;
  int pitch, in_tile;
  float low_bias, high_bias;

  __device__ PanelOut(const W4Args& args, int expert, int first_panel, int in_tile_, int pitch_,
                      uint8_t* shared)
      : shape(args.shape),
        tile(reinterpret_cast<uint16_t*>(shared)),
        pitch(pitch_),
        in_tile(in_tile_) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const auto bias = [&](int i) {
      const int row = weight_row(shape, first_panel + in_tile, i);
      return row < shape.n ? bf16_to_float(args.bias[int64_t{expert} * shape.n + row]) : 0.0f;
    };
    low_bias = bias(g);
    high_bias = bias(g + 8);
  }
  /// `weight`: of the routing, 1 in gate_up.
  __device__ void put(int token, float low, float high, float weight) const {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    low += low_bias;
    high += high_bias;
    uint16_t* to = tile + token * pitch + in_tile * panel_columns(shape) + g;
    if (!shape.down) {
      *to = float_to_bf16(swiglu(shape, low, high));
      return;
    }
    to[0] = float_to_bf16(weight * low);
    to[8] = float_to_bf16(weight * high);
  }
};

/// A tile's outputs from shared memory to memory, in whole lines.
template <int kThreads>
__device__ void copy_out(const W4Args& args, const int32_t* ids, int rows, int first_panel,
                         int panels, const uint8_t* shared) {
  const W4Shape& shape = args.shape;
  const auto* const tile = reinterpret_cast<const uint16_t*>(shared);
  const int width = panels * panel_columns(shape), pitch = out_pitch(shape, panels);
  const int first = first_panel * panel_columns(shape);
  const int columns = min(width, shape.outputs() - first);
  const int piece = shape.outputs() % 8 == 0 ? 8 : 1, pieces = width / piece;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += kThreads) {
    const int token = i / pieces, column = i % pieces * piece;
    if (column >= columns) continue;
    uint16_t* to = args.out + int64_t{ids[token]} * shape.outputs() + first + column;
    const uint16_t* from = tile + token * pitch + column;
    if (piece == 8) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      *to = *from;
    }
  }
}

}  // namespace moegate::w4_moe
