// SPDX-License-Identifier: Apache-2.0
// What the CUDA variants of dense_fc2 in the structure of TensorRT-LLM PR 12686 share: tiles of 128
// tokens, the persistent blocks' order of them, and a thread that fills a ring of stages by TMA.
// A stage is a step of K: one or two slabs of 128 of K, of both operands, under one barrier.
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/dense_fc2/dense_fc2.h"
#include "kernels/moe_gemm/fp8/output_tile.cuh"

namespace moegate::dense_fc2::alpha {

using namespace cuda;

constexpr int kRows = 128;  // tokens of a tile, 64 for each of two warpgroups
constexpr int kConsumers = 256, kThreads = kConsumers + 128;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;
constexpr int kASlabBytes = kRows * kMoeGroup;
constexpr int kRingBytes = 192 * 1024;

/// What is summed up in an accumulator before it meets its alpha. With block scale factors both
/// come down to 128 of K, and differ in how alpha comes.
enum class AlphaPer { k_tile, expert };

template <AlphaPer PerAlpha, int Columns, int KTile, bool BlockScales, int Blocks>
struct Config {
  static constexpr int kColumns = Columns;  // of a tile: rows of b
  static constexpr int kKTile = KTile;      // of a stage
  static constexpr bool kBlockScales = BlockScales;
  static constexpr int kBlocks = Blocks;  // of a cluster, one below the other, that share b's tile

  static constexpr int kSlabs = KTile / kMoeGroup;
  static constexpr int kBSlabBytes = Columns * kMoeGroup;
  static constexpr int kABytes = kSlabs * kASlabBytes;  // of a stage; b follows
  static constexpr int kStageBytes = kABytes + kSlabs * kBSlabBytes;
  static constexpr int kStages = kRingBytes / kStageBytes;

  /// Slabs whose products are committed together.
  static constexpr int kUnitSlabs = BlockScales ? 1 : kSlabs;
  static constexpr int kStageUnits = kSlabs / kUnitSlabs;
  /// Whether an accumulator sums up an expert's whole part of K: an alpha serves once.
  static constexpr bool kExpertSums = PerAlpha == AlphaPer::expert && !BlockScales;
  /// Of a thread: one is added to the tile's sums while products go to the others.
  static constexpr int kAccumulators = 2;
  /// Commits between two promotions.
  __host__ __device__ static constexpr int units(const DenseFc2Shape& s) {
    return kExpertSums ? s.inter / KTile : 1;
  }
  /// Times that an accumulator is added to a tile's sums.
  __host__ __device__ static constexpr int promotions(const DenseFc2Shape& s) {
    return s.k() / (kUnitSlabs * kMoeGroup) / units(s);
  }
};

template <class C>
struct Shared {
  uint8_t stages[C::kStages][C::kStageBytes];                        // with the 128-byte swizzle
  uint8_t staged[kConsumers / 32][moe_gemm::fp8::kWarpStagedBytes];  // of the output, per warp
  uint64_t full[C::kStages], empty[C::kStages];
};

/// By all threads; they and those of other blocks may use the barriers after the block's, or the
/// cluster's, barrier.
template <class C>
__device__ void init_stages(Shared<C>& shared) {
  init_barriers(0, shared.full, 1);
  init_barriers(1, shared.empty, C::kBlocks * kConsumers / 32);
  fence_barrier_init();
}

/// Where a thread block's tile starts.
struct Tile {
  int row, column;
};

/// Tiles of a launch, of which a cluster takes kBlocks at a time.
template <class C>
__host__ __device__ int row_tiles(const DenseFc2Shape& s) {
  return (s.tokens + C::kBlocks * kRows - 1) / (C::kBlocks * kRows);
}
template <class C>
__host__ __device__ int all_tiles(const DenseFc2Shape& s) {
  return row_tiles<C>(s) * ((s.hidden + C::kColumns - 1) / C::kColumns);
}

/// The operands as the copy engine sees them: a in tiles of kRows rows, and the last of these,
/// which may have fewer. Zeros from beyond the last row would take longer to copy than rows that
/// exist.
struct Maps {
  CUtensorMap a, last_a, b;
};

/// Rows of the tile that starts at `row`; none: 0.
__host__ __device__ inline int rows_of(const DenseFc2Shape& s, int row) {
  const int left = s.tokens - row;
  return left < 0 ? 0 : left < kRows ? left : kRows;
}

/// This block's place in its cluster.
template <class C>
__device__ int rank() {
  return C::kBlocks == 1 ? 0 : cluster_rank();
}

/// Calls f(tile) for the tiles of a thread block. All of them work side by side through the list,
/// rows first: those that share columns find b's tile in L2.
template <class C, class F>
__device__ void for_tiles(const DenseFc2Shape& s, F f) {
  const int rows = row_tiles<C>(s), all = all_tiles<C>(s), step = gridDim.x / C::kBlocks;
  for (int index = blockIdx.x / C::kBlocks; index < all; index += step) {
    f(Tile{(index % rows * C::kBlocks + rank<C>()) * kRows, index / rows * C::kColumns});
  }
}

/// Fills the stages with both operands, by one thread. In a cluster each block brings its part of
/// b's tile, for all of them.
template <class C>
__device__ void produce(const Maps& maps, const DenseFc2Shape& s, Shared<C>& shared) {
  constexpr int kBRows = C::kColumns / C::kBlocks;
  const int first_b_row = rank<C>() * kBRows;
  Ring ring{C::kStages};
  for_tiles<C>(s, [&](const Tile& tile) {
    // What is multiplied where there are no rows is not written.
    const int rows = rows_of(s, tile.row);
    const CUtensorMap* a_map = rows < kRows ? &maps.last_a : &maps.a;
    for (int k = 0; k < s.k(); k += C::kKTile, ring.advance()) {
      uint64_t* full = &shared.full[ring.stage];
      const uint32_t a = shared_address(shared.stages[ring.stage]);
      const uint32_t b = a + C::kABytes + first_b_row * kMoeGroup;
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      arrive_expecting(full, C::kStageBytes - C::kSlabs * (kRows - rows) * kMoeGroup);
#pragma unroll
      for (int slab = 0; slab < C::kSlabs; ++slab) {
        const int at = k + slab * kMoeGroup, row = tile.column + first_b_row;
        if (rows > 0) copy_tile(a + slab * kASlabBytes, a_map, at, tile.row, full);
        if constexpr (C::kBlocks == 1) {
          copy_tile(b + slab * C::kBSlabBytes, &maps.b, at, row, full);
        } else {
          copy_tile(b + slab * C::kBSlabBytes, &maps.b, at, row, shared_address(full),
                    evict_normal(), (1 << C::kBlocks) - 1);
        }
      }
    }
  });
  // A block stays until those of its cluster have made their last arrivals at its barriers.
  if constexpr (C::kBlocks > 1) {
    for (int i = 0; i < C::kStages; ++i, ring.advance())
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
  }
}

}  // namespace moegate::dense_fc2::alpha
