// SPDX-License-Identifier: Apache-2.0
// What the tiled w4 products share: how rows of x lie in stages in shared memory, how a unit of
// weights there is decoded, and the way of a tile's sums to the output.
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

/// Elements from a token's outputs to the next token's in shared memory, of a tile with so many
/// panels.
MOEGATE_HD inline int out_pitch(const W4Shape& shape, int panels) {
  return panels * panel_columns(shape) + 8;
}

/// What a lane has of a panel's unit in shared memory.
template <class W>
__device__ Unit<W> unit_in_shared(const uint8_t* unit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {*reinterpret_cast<const uint4*>(unit + lane * 16),
          reinterpret_cast<const typename W::Scales*>(unit + kUnitCodes)[lane / 4]};
}

/// The sums of a panel, rows g and g + 8 of it (low, high) of a token, as outputs [token, column]
/// in shared memory.
template <class W>
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
      return has_bias<W>(args, row) ? bf16_to_float(args.bias[int64_t{expert} * shape.n + row])
                                    : 0.0f;
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

/// A tile's outputs from shared memory to memory, in whole lines, by so many threads.
template <int kThreads>
__device__ void copy_out(const W4Args& args, const int32_t* ids, int rows, int first_panel,
                         int panels, const uint8_t* shared) {
  const W4Shape& shape = args.shape;
  const auto* const tile = reinterpret_cast<const uint16_t*>(shared);
  const int width = panels * panel_columns(shape), pitch = out_pitch(shape, panels);
  const int first = first_panel * panel_columns(shape);
  const int columns = min(width, shape.outputs() - first);
  const int piece = shape.outputs() % 8 == 0 ? 8 : 1, pieces = width / piece;
  for (int i = static_cast<int>(threadIdx.x) % kThreads; i < rows * pieces; i += kThreads) {
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
