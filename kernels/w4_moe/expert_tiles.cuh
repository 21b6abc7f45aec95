// SPDX-License-Identifier: Apache-2.0
// The tiles of rows of all experts, for kernels whose tiles have as many columns as rows there are:
// an expert's rows are shared out evenly over as few tiles as hold them, in steps of 8. The widest
// come first.
#pragma once

#include "kernels/cuda/wgmma.cuh"
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {

constexpr int kMostTileRows = 128, kRowStep = 8;
constexpr int kMostExperts = 512;

/// Some rows of an expert: place of the first in sorted_token_ids; how many.
struct TileOfRows {
  int expert, first, rows;
};

/// Lies in shared memory; every thread of the block calls find().
class ExpertTiles {
 public:
  /// By all `kThreads` threads of the block, each of which returns when all is there.
  template <int kThreads>
  __device__ void find(const W4Args& args) {
    find_rows<kThreads>(args);
    const int experts = args.shape.experts, thread = static_cast<int>(threadIdx.x);
    for (int e = thread; e < experts; e += kThreads) put(e, experts);
    // The last warp counts, because others have experts to put.
    if (const int lane = thread - (kThreads - 32); lane >= 0) count(lane, experts);
    __syncthreads();
  }

  __device__ int all() const { return wider_[0]; }
  /// Tiles of more columns than this, a multiple of 8: they come before the others.
  __device__ int wider_than(int columns) const { return wider_[columns / kRowStep]; }
  __device__ int most_columns() const { return most_columns_; }

  __device__ TileOfRows operator[](int tile) const {
    int place = 0, beyond = experts_;  // the last whose first tile is at most this one
    while (beyond - place > 1) {
      const int middle = (place + beyond) / 2;
      (first_tile_[middle] <= tile ? place : beyond) = middle;
    }
    const int expert = expert_[place], rows = rows_[expert];
    const int columns = steps_[expert] * kRowStep;
    const int begin = (tile - first_tile_[place]) * columns;
    return {expert, first_row_[expert] + begin, min(columns, rows - begin)};
  }

 private:
  static constexpr int kSteps = kMostTileRows / kRowStep;

  /// Blocks of one expert follow each other, and padding ends the last, of which eight lanes count
  /// the rows.
  template <int kThreads>
  __device__ void find_rows(const W4Args& args) {
    constexpr int kLanes = 8;
    const W4Shape& shape = args.shape;
    const int thread = static_cast<int>(threadIdx.x);
    for (int e = thread; e < shape.experts; e += kThreads) rows_[e] = 0;
    __syncthreads();
    const int blocks = *args.padded_rows / shape.block;
    for (int b = thread; b < blocks; b += kThreads) {
      const int expert = args.expert_ids[b];
      if (b == 0 || args.expert_ids[b - 1] != expert) first_row_[expert] = b * shape.block;
      if (b + 1 == blocks || args.expert_ids[b + 1] != expert)
        rows_[expert] = (b + 1) * shape.block;
    }
    __syncthreads();
    for (int first = 0; first < shape.experts; first += kThreads / kLanes) {
      const int e = first + thread / kLanes, lane = thread % kLanes;
      const bool has_rows = e < shape.experts && rows_[e] > 0;
      int rows = 0;
      if (has_rows) {
        const int last_block = rows_[e] - shape.block;
        const int32_t* const ids = args.sorted_token_ids + last_block;
#pragma unroll 8
        for (int i = lane; i < shape.block; i += kLanes) rows += ids[i] < shape.rows();
        if (lane == 0) rows += last_block - first_row_[e];
      }
#pragma unroll
      for (int other = kLanes / 2; other > 0; other /= 2) rows += __shfl_xor_sync(~0u, rows, other);
      __syncwarp();  // all have read where the rows end
      if (lane > 0 || e >= shape.experts) continue;
      const int tiles = (rows + kMostTileRows - 1) / kMostTileRows;
      rows_[e] = rows;
      tiles_[e] = tiles;
      const int columns = tiles == 0 ? 0 : (rows + tiles - 1) / tiles;
      steps_[e] = static_cast<uint8_t>((columns + kRowStep - 1) / kRowStep);
    }
    __syncthreads();
  }

  /// Behind all that are wider, and those of lower number that are as wide.
  __device__ void put(int e, int experts) {
    const int steps = steps_[e];
    if (steps == 0) return;
    int place = 0, tiles = 0;
#pragma unroll 4
    for (int other = 0; other < experts; ++other) {
      const bool is_before = steps_[other] > steps || (steps_[other] == steps && other < e);
      place += is_before;
      tiles += is_before ? tiles_[other] : 0;
    }
    expert_[place] = e;
    first_tile_[place] = tiles;
  }

  /// Lane i counts the tiles of more than i steps; lane 0 knows all that have rows.
  __device__ void count(int lane, int experts) {
    int tiles = 0, places = 0;
#pragma unroll 4
    for (int e = 0; e < experts; ++e) {
      if (steps_[e] <= lane) continue;
      tiles += tiles_[e];
      ++places;
    }
    if (lane <= kSteps) wider_[lane] = tiles;
    const unsigned some = __ballot_sync(~0u, tiles > 0);
    if (lane > 0) return;
    experts_ = places;
    most_columns_ = __popc(some) * kRowStep;
  }

  // Of each expert: where its rows begin; how many, at first where they end; its tiles and the
  // columns of one, in steps.
  int first_row_[kMostExperts], rows_[kMostExperts], tiles_[kMostExperts];
  uint8_t steps_[kMostExperts];
  int expert_[kMostExperts], first_tile_[kMostExperts];  // by place
  int wider_[kSteps + 1];                                // tiles of more steps than this
  int experts_, most_columns_;                           // experts that have rows
};

}  // namespace moegate::w4_moe
