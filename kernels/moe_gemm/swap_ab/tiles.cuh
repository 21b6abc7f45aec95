// SPDX-License-Identifier: Apache-2.0
// How swap_ab divides a grouped GEMM: the tiles of a thread block, and the ring of stages in shared
// memory between the threads that copy and those that multiply.
#pragma once

#include <type_traits>

#include "kernels/cuda/pipeline.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::swap_ab {

using namespace cuda;

/// Thread blocks that share an SM. Narrow tiles of bf16: three, so that all of one token's are
/// there at once.
constexpr int blocks_per_sm(DType dtype, int tokens, int columns, bool split) {
  if (dtype == DType::bf16 && tokens <= 32 && columns == 64 && !split) return 3;
  return tokens == 128 ? 1 : 2;
}

/// What a kernel is compiled for. Shared memory holds as many stages as fit.
template <DType kType, int Tokens, int Columns, bool Split, bool Once, bool Biased>
struct ConfigOf {
  static constexpr DType kDtype = kType;
  static constexpr bool kOnce = Once;  // scale factors follow the sum over all of K
  static constexpr bool kBiased = Biased;
  using Args = std::conditional_t<kBiased, BiasedArgs, MoeGemmArgs>;  // of its kernel
  // Of the row: a bias comes between it and the routing weight.
  static constexpr bool kFactorApart = Once && Biased;
  static constexpr bool kScaled = kDtype == DType::e4m3 && !kOnce;
  using Sum = std::conditional_t<kDtype == DType::i8, int, float>;
  static constexpr int kElementBytes = size_of(kDtype);
  static constexpr int kTokens = Tokens;    // BM, routed rows in a block
  static constexpr int kColumns = Columns;  // of the output in a tile: rows of weights
  static constexpr bool kSplit = Split;     // K over the blocks of a cluster
  static constexpr int kBlocksPerSm = blocks_per_sm(kDtype, Tokens, Columns, Split);
  // Few rows: sums leave by warps, not by way of shared memory, and weights have a warp of their
  // own to copy them, so that they need not wait for the rows' addresses.
  static constexpr bool kFewRows = Tokens <= 32;

  static constexpr int kConsumers = Columns * 2;  // threads: a warpgroup per 64 columns
  static constexpr int kRowThreads = Tokens < 32 ? 32 : Tokens;
  static constexpr int kThreads = kConsumers + kRowThreads + (kFewRows ? 32 : 0);
  static constexpr int kRowsPerThread = Tokens * 8 / kRowThreads;  // 16 bytes of each

  static constexpr int kTileBytes = Columns * kSliceBytes;
  static constexpr int kStageBytes = kTileBytes + Tokens * kSliceBytes;
  // Per stage: of the rows, of the weights, unused.
  static constexpr int kScales = kScaled ? Tokens + 4 : 0;
  static constexpr int kStagedRows = 32;           // of the output, at a time
  static constexpr int kPitch = Columns + 8;       // rows begin in different banks
  static constexpr int kInbox = Columns * Tokens;  // sums
  static constexpr int kOutputBytes =
      Split      ? 2 * kInbox * 4
      : kFewRows ? 0
                 : kStagedRows * kPitch * 2 + 2 * Tokens * (kFactorApart ? 12 : 8);

  // An SM has 228 KiB, of which every block costs one more; a block gets 227 at most.
  static constexpr int kMostShared = (228 / kBlocksPerSm - 1) * 1024;
  static constexpr int kStages =
      (kMostShared - kOutputBytes - 2 * 8) / (kStageBytes + kScales * 4 + 2 * 8);
  static constexpr int kScalesAt = kStages * kStageBytes;
  static constexpr int kOutputAt = kScalesAt + kStages * kScales * 4;
  static constexpr int kBarriersAt = kOutputAt + kOutputBytes;
  static constexpr int kSharedBytes = kBarriersAt + (2 * kStages + 2) * 8;
  static_assert(kStages >= 4 && kStages <= 32 && kSharedBytes <= kMostShared);
};

/// bf16, or fp8 with scale factors of blocks.
template <DType kType, int Tokens, int Columns, bool Split>
struct Config : ConfigOf<kType, Tokens, Columns, Split, false, false> {};
template <int Tokens, int Columns, bool Split>
struct ConfigOnce : ConfigOf<DType::e4m3, Tokens, Columns, Split, true, false> {};
/// With a bias: bf16, or fp8 scaled once.
template <DType kType, int Tokens, int Columns, bool Split>
struct ConfigBiased : ConfigOf<kType, Tokens, Columns, Split, kType == DType::e4m3, true> {};
template <int Tokens, int Columns, bool Split, bool Biased>
struct ConfigInt8 : ConfigOf<DType::i8, Tokens, Columns, Split, true, Biased> {};

/// The ring, as one thread goes around it.
template <class C>
struct Stages {
  uint8_t* shared;  // 1024-byte aligned
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint8_t* weights() const { return shared + stage * C::kStageBytes; }
  __device__ uint8_t* rows() const { return weights() + C::kTileBytes; }
  __device__ float* row_scales() const {
    return reinterpret_cast<float*>(shared + C::kScalesAt) + stage * C::kScales;
  }
  __device__ float* weight_scale() const { return row_scales() + C::kTokens; }
  __device__ uint64_t* full() const {
    return reinterpret_cast<uint64_t*>(shared + C::kBarriersAt) + stage;
  }
  __device__ uint64_t* empty() const { return full() + C::kStages; }
  __device__ void advance() {
    if (++stage < C::kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

/// The barriers that say that the parts of a tile's sums came, for tiles in turn.
template <class C>
__device__ uint64_t* arrived_barriers(uint8_t* shared) {
  return reinterpret_cast<uint64_t*>(shared + C::kBarriersAt) + 2 * C::kStages;
}

/// What a block computes: some columns of a block of rows, over some slices of K.
struct Tile {
  int block, column, first_slice, slices;
};

/// How a launch cuts its product.
struct Cut {
  int log_splits;       // of the blocks of a cluster, each with a part of K
  int most_row_blocks;  // that the routing could need
};

/// The tiles of a thread block; in a cluster each block has its part of K. Where K is short a
/// block's tiles follow each other, so that it gathers its rows' addresses once for many tiles.
/// Where it is long, all blocks work side by side through the list: the blocks of rows of one
/// expert then find its weights in L2 (DeepSeek-R1 gate-up, 2048 tokens: 374 us in place of 425).
template <class C>
struct Tiles {
  static constexpr int kShortSlices = 8;
  int begin, end, step;
  int columns;  // tiles per block of rows
  int first_slice, slices;

  __device__ Tiles(const MoeGemmShape& shape, const Cut& cut, int row_blocks)
      : columns((shape.n + C::kColumns - 1) / C::kColumns) {
    const int all = row_blocks * columns;
    const int runs = __clusterGridDimInClusters().x, run = __clusterIdx().x;
    if (slices_of<C::kDtype>(shape) <= kShortSlices) {
      const int each = static_cast<unsigned>(all) / runs, longer = all - each * runs;
      begin = run * each + min(run, longer);
      end = begin + each + (run < longer);
      step = 1;
    } else {
      begin = run;
      end = all;
      step = runs;
    }
    const int rank = __clusterRelativeBlockRank();
    first_slice = rank * slices_of<C::kDtype>(shape) >> cut.log_splits;
    slices = ((rank + 1) * slices_of<C::kDtype>(shape) >> cut.log_splits) - first_slice;
  }
  __device__ Tile operator[](int index) const {
    const int block = static_cast<unsigned>(index) / columns;
    return {block, (index - block * columns) * C::kColumns, first_slice, slices};
  }
};

/// The block of rows that a thread block most likely begins with; one that exists in any case. Its
/// expert and rows can be looked up before the number of blocks is known.
template <class C>
__device__ int likely_row_block(const MoeGemmShape& shape, const Cut& cut) {
  const Tiles<C> tiles(shape, cut, cut.most_row_blocks);
  return tiles[tiles.begin].block;
}

}  // namespace moegate::moe_gemm::swap_ab
