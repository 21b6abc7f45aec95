// SPDX-License-Identifier: Apache-2.0
// The way of a warpgroup's products to the output: SwiGLU or the routing weight, turned in shared
// memory, then whole lines. A product is 64 rows of weights times the routed rows of a tile.
#pragma once

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/named_barriers.cuh"
#include "kernels/w4_moe/expert_tiles.cuh"
#include "kernels/w4_moe/tile.cuh"

namespace moegate::w4_moe {

constexpr int kProductPanels = 4;  // 64 rows of weights
constexpr int kStagedRows = 64;    // of its output at a time

/// A warpgroup's output on its way: some rows of a product, and of the tile the routed rows and
/// their weights.
struct StagedProduct {
  alignas(16) uint8_t out[kStagedRows * (kProductPanels * kPanelRows + 8) * 2];
  int ids[kMostTileRows];
  float weights[kMostTileRows];
};

/// What a warpgroup has to look up for it, it does before the products.
template <class W>
class ProductOutput {
 public:
  __device__ ProductOutput(const W4Args& args, const TileOfRows& tile, int first_panel,
                           StagedProduct& staged)
      : args_(args),
        staged_(staged),
        column_(first_panel * panel_columns(args.shape)),
        rows_(tile.rows) {
    id_ = thread() < rows_ ? args.sorted_token_ids[tile.first + thread()] : 0;
    weight_ = args.shape.down && thread() < rows_ ? args.routing_weights[id_] : 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = weight_row(args.shape, first_panel + warp(), lane() / 4 + i * 8);
      biases_[i] = has_bias<W>(args, row)
                       ? bf16_to_float(args.bias[int64_t{tile.expert} * args.shape.n + row])
                       : 0.0f;
    }
  }

  template <int kColumns>
  __device__ __forceinline__ void write(const float (&sums)[kColumns / 2]) const {
    staged_.ids[thread()] = id_;
    staged_.weights[thread()] = weight_;
    sync();
#pragma unroll
    for (int first = 0; first < kColumns; first += kStagedRows) {
      if (first >= rows_) break;
      stage<kColumns>(first, sums);
      sync();
      copy_out(first);
      sync();
    }
  }

 private:
  __device__ static int thread() {
    return static_cast<int>(threadIdx.x) % 128;
  }
  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int warp() {
    return thread() / 32;
  }
  __device__ static void sync() {
    cuda::sync_barrier<128>(cuda::kStagingBarrier + cuda::warpgroup());
  }
  __device__ int pitch() const {
    return out_pitch(args_.shape, kProductPanels) * 2;
  }

  /// Matrices of 8 rows of weights and 8 of x, turned.
  template <int kColumns>
  __device__ __forceinline__ void stage(int first, const float (&sums)[kColumns / 2]) const {
    const bool down = args_.shape.down;
    const uint32_t to = cuda::shared_address(staged_.out) + lane() * pitch() +
                        warp() * panel_columns(args_.shape) * 2;
#pragma unroll
    for (int begin = 0; begin < kStagedRows; begin += 32) {
      if (first + begin >= kColumns) break;
      uint32_t low[4] = {}, high[4] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first + begin + i * 8;
        if (row >= kColumns) break;
        const float a = sums[row / 2] + biases_[0], b = sums[row / 2 + 1] + biases_[0];
        const float c = sums[row / 2 + 2] + biases_[1], d = sums[row / 2 + 3] + biases_[1];
        if (down) {
          const auto w = *reinterpret_cast<const float2*>(staged_.weights + row + lane() % 4 * 2);
          low[i] = cuda::pack_bf16(w.x * a, w.y * b);
          high[i] = cuda::pack_bf16(w.x * c, w.y * d);
        } else {
          low[i] = cuda::pack_bf16(swiglu(args_.shape, a, c), swiglu(args_.shape, b, d));
        }
      }
      cuda::store_turned(to + begin * pitch(), low[0], low[1], low[2], low[3]);
      if (down) cuda::store_turned(to + begin * pitch() + 16, high[0], high[1], high[2], high[3]);
    }
  }

  __device__ void copy_out(int first) const {
    const int outputs = args_.shape.outputs();
    const int pieces = kProductPanels * panel_columns(args_.shape) / 8, piece = thread() % pieces;
    const int column = column_ + piece * 8;
    for (int row = thread() / pieces; row < min(kStagedRows, rows_ - first); row += 128 / pieces) {
      uint16_t* to = args_.out + int64_t{staged_.ids[first + row]} * outputs + column;
      const uint8_t* from = staged_.out + row * pitch() + piece * 16;
      if (outputs % 8 == 0) {
        if (column < outputs) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      } else {
        for (int i = 0; i < 8 && column + i < outputs; ++i)
          to[i] = reinterpret_cast<const uint16_t*>(from)[i];
      }
    }
  }

  const W4Args& args_;
  StagedProduct& staged_;
  int column_, rows_, id_;
  float weight_, biases_[2];
};

}  // namespace moegate::w4_moe
