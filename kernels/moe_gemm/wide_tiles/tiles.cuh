// SPDX-License-Identifier: Apache-2.0
// How wide_tiles divides a grouped GEMM: the tiles of a thread block or a pair of them, what of one
// each warpgroup has, and the stages in shared memory.
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/moe_gemm/fp8/output_tile.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::wide_tiles {

using namespace cuda;

constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;

/// What a kernel is compiled for.
template <DType kType, int Tokens, int Columns, int Cluster>
struct Config {
  static constexpr DType kDtype = kType;
  static constexpr bool kScaled = kDtype == DType::e4m3;
  static constexpr int kElementBytes = size_of(kDtype);
  static constexpr int kTokens = Tokens;    // BM, routed rows in a block
  static constexpr int kColumns = Columns;  // of a tile: rows of weights
  // Thread blocks that take neighbouring blocks of rows of one expert side by side, for which each
  // copies its share of the weights to all.
  static constexpr int kCluster = Cluster;

  static constexpr int kWeightBytes = Columns * kSliceBytes;  // of a stage
  static constexpr int kStageBytes = kWeightBytes + Tokens * kSliceBytes;
  static constexpr int kStages = kStageBytes > 40 * 1024 ? 4 : 5;
  static constexpr int kConsumerRegisters = kScaled ? 232 : 224;
  static constexpr int kProducerRegisters = kScaled ? 40 : 56;

  // Of a warpgroup: of a block of 128 rows each has 64, with all columns; of one of 64 it has all
  // rows, with half of the columns. Sums of fp8 are apart from the products' accumulators: its
  // products are narrower.
  static constexpr int kPartColumns = Tokens == 128 ? Columns : Columns / 2;
  static constexpr int kProductColumns = kScaled ? 128 : kPartColumns;
  static constexpr int kProducts = kPartColumns / kProductColumns;
  static constexpr int kProductBytes = kProductColumns * kSliceBytes;
  static constexpr int kPartRowBytes = 64 * kSliceBytes;
};

template <class C>
struct Shared {
  uint8_t stages[C::kStages][C::kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[kConsumers / 32][fp8::kWarpStagedBytes];  // of the output, per warp
  float row_scales[C::kStages][C::kScaled ? C::kTokens : 1];
  uint64_t full[C::kStages], empty[C::kStages];
};

struct Tile {
  int block, expert, column;
  bool exists = true;   // of an odd number of columns the last has no neighbour
  bool shared = false;  // the weights, with the cluster
};

/// All thread blocks work side by side through the list, columns first: blocks of rows of one
/// expert find its weights in L2.
template <class C, bool = C::kCluster == 1>
struct Tiles {
  int columns, all;
  __device__ explicit Tiles(const MoeGemmArgs& args)
      : columns((args.shape.n + C::kColumns - 1) / C::kColumns),
        all(*args.padded_rows / args.shape.block * columns) {}
  __device__ static unsigned first() { return blockIdx.x; }
  __device__ static unsigned step() { return gridDim.x; }
  template <class Index>
  __device__ bool has(const MoeGemmArgs&, const Index& index) const {
    return index < all;
  }
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int block = index / columns;
    return {block, __ldg(args.expert_ids + block), index % columns * C::kColumns};
  }
};

/// The list of clusters of two: two blocks of rows of one expert at the same columns, whose weights
/// they share; for a last block of an odd number, two neighbouring tiles of its own. Indices are
/// asked for in ascending order.
template <class C>
struct Tiles<C, false> {
  static_assert(C::kCluster == 2);
  const int columns, blocks;
  mutable int block = 0, before = 0;  // where the last index was found; the tiles before that

  __device__ explicit Tiles(const MoeGemmArgs& args)
      : columns((args.shape.n + C::kColumns - 1) / C::kColumns),
        blocks(*args.padded_rows / args.shape.block) {}
  __device__ static int first() { return blockIdx.x / 2; }
  __device__ static int step() { return gridDim.x / 2; }
  __device__ bool has(const MoeGemmArgs& args, int index) const {
    for (; block < blocks; block += paired(args) ? 2 : 1) {
      const int tiles = paired(args) ? columns : (columns + 1) / 2;
      if (index < before + tiles) return true;
      before += tiles;
    }
    return false;
  }
  /// Of an index that has() found.
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int at = index - before, rank = cluster_rank(), expert = __ldg(args.expert_ids + block);
    if (paired(args)) return {block + rank, expert, at * C::kColumns, true, true};
    const int column = 2 * at + rank;
    return {block, expert, column * C::kColumns, column < columns, false};
  }

 private:
  __device__ bool paired(const MoeGemmArgs& args) const {
    return block + 1 < blocks &&
           __ldg(args.expert_ids + block) == __ldg(args.expert_ids + block + 1);
  }
};

/// What a warpgroup multiplies.
template <class C>
struct Part {
  int row, first_product;  // the warp's first row; in units of kProductColumns
  __device__ Part()
      : row((C::kTokens == 128 ? threadIdx.x / 128 * 64 : 0) + threadIdx.x / 32 % 4 * 16),
        first_product(C::kTokens == 128 ? 0 : threadIdx.x / 128) {}
};

/// The scale factors of a tile's weights, read ahead by one group of K; none in bf16.
template <class C, bool = C::kScaled>
struct WeightScales {
  static constexpr int kProducts = C::kProducts;
  const float* at[kProducts];
  float next[kProducts];
  int left;  // groups

  __device__ WeightScales(const MoeGemmArgs& args, const Tile& tile, const Part<C>& part)
      : left(args.shape.k_groups()) {
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      // Beyond the last column: any factor, nothing is written.
      const int n_group =
          min(tile.column / kMoeGroup + part.first_product + p, args.shape.n_groups() - 1);
      at[p] = args.weight_scales + (int64_t{tile.expert} * args.shape.n_groups() + n_group) * left;
      next[p] = __ldg(at[p]);
    }
  }
  __device__ void advance() {
    if (--left == 0) return;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) next[p] = __ldg(++at[p]);
  }
};

template <class C>
struct WeightScales<C, false> {
  __device__ WeightScales(const MoeGemmArgs&, const Tile&, const Part<C>&) {}
};

/// A tile from a warpgroup's side; what it needs is asked for here, long before it is used.
template <class C>
struct Job {
  Tile tile;
  int id;         // of row l % 16 of the warp's
  bool has_rows;  // padding is at a block's end: where the first row has none, all are
  WeightScales<C> weight_scales;

  __device__ Job(const MoeGemmArgs& args, const Tiles<C>& tiles, int index, const Part<C>& part)
      : tile(tiles.get(args, index)), weight_scales(args, tile, part) {
    if constexpr (C::kCluster > 1) {
      has_rows = false;
      if (!tile.exists) return;
    }
    const int32_t* ids = args.sorted_token_ids + tile.block * C::kTokens + part.row;
    id = __ldg(ids + threadIdx.x % 16);
    has_rows = __ldg(ids - part.row % 64) < args.shape.rows();
  }
};

/// The warp has left a stage; every block that fills it is told.
template <class C>
__device__ void leave_stage(uint64_t* empty) {
  if constexpr (C::kCluster == 1) {
    if (threadIdx.x % 32 == 0) arrive_barrier(empty);
  } else {
    const int lane = threadIdx.x % 32;
    if (lane < C::kCluster) arrive_at(shared_address_of(shared_address(empty), lane));
  }
}

/// The sums of a thread.
template <class C>
using Sums = float[C::kProducts][C::kProductColumns / 2];

}  // namespace moegate::moe_gemm::wide_tiles
