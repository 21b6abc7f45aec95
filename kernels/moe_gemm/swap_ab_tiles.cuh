// SPDX-License-Identifier: Apache-2.0
// How swap_ab divides a grouped GEMM: the tiles of a thread block, and the ring of stages in shared
// memory between the threads that copy and those that multiply.
#pragma once

#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/pipeline.cuh"

namespace moegate::gemm {

constexpr int kTileColumns = 128;  // of the output: rows of weights
constexpr int kTileBytes = kTileColumns * kMoeGroup;
constexpr int kConsumers = 256;  // threads: two warpgroups

/// What depends on the number of routed rows in a block.
template <int Tokens>
struct Config {
  static constexpr int kProducers = Tokens >= 64 ? Tokens : 32;  // threads
  static constexpr int kThreads = kConsumers + kProducers;
  static constexpr int kBlocksPerSm = Tokens >= 128 ? 1 : 2;
  static constexpr int kStages = Tokens == 64 ? 4 : Tokens == 128 ? 6 : 5;
  static constexpr int kStageBytes = kTileBytes + Tokens * kMoeGroup;
  static constexpr int kRowsPerThread = Tokens * 8 / kProducers;  // 16 bytes of each
  static constexpr int kStagedRows = Tokens < 32 ? Tokens : 32;   // of the output, at a time
  static constexpr int kPitch = kTileColumns + 8;                 // rows begin in different banks
  static constexpr int kStagedBytes = kStagedRows * kPitch * 2;
  static constexpr int kSharedBytes = 1024 + kStages * (kStageBytes + Tokens * 4) + kStagedBytes;
};

/// Where a block's rows go to.
template <int Tokens>
struct OutputRows {
  int id[Tokens];  // row of out; R or more for padding
  float weight[Tokens];
};

template <int Tokens>
struct Stages {
  uint8_t* base;  // [kStages][weights, rows], 1024-byte aligned
  float* scales;  // [kStages][Tokens]
  uint64_t *full, *empty;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint8_t* weights() const { return base + stage * Config<Tokens>::kStageBytes; }
  __device__ uint8_t* rows() const { return weights() + kTileBytes; }
  __device__ float* row_scales() const { return scales + stage * Tokens; }
  __device__ void advance() {
    if (++stage < Config<Tokens>::kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

/// What a block computes: 128 columns of a block of rows, over some groups of K.
struct Tile {
  int block, expert, column, first_group, groups;
};

/// The tiles of a thread block; in a cluster each block has its part of K. Where K is short a
/// block's tiles follow each other, so that it gathers its rows' addresses once for many tiles.
/// Where it is long, all blocks work side by side through the list: the blocks of rows of one
/// expert then find its weights in L2 (DeepSeek-R1 gate-up, 2048 tokens: 374 us in place of 425).
struct Tiles {
  static constexpr int kShortGroups = 8;
  int begin, end, step;
  int columns;  // tiles per block of rows
  int rank, splits;

  __device__ Tiles(const MoeGemmArgs& args, int splits)
      : columns((args.shape.n + kTileColumns - 1) / kTileColumns),
        rank(blockIdx.x % splits),
        splits(splits) {
    const int all = *args.padded_rows / args.shape.block * columns;
    const int runs = gridDim.x / splits, run = blockIdx.x / splits;
    const bool in_a_row = args.shape.k_groups() <= kShortGroups;
    begin = in_a_row ? static_cast<int>(int64_t{all} * run / runs) : run;
    end = in_a_row ? static_cast<int>(int64_t{all} * (run + 1) / runs) : all;
    step = in_a_row ? 1 : runs;
  }
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int block = index / columns, groups = args.shape.k_groups();
    const int first = rank * groups / splits;
    return {block, __ldg(args.expert_ids + block), index % columns * kTileColumns, first,
            (rank + 1) * groups / splits - first};
  }
};

}  // namespace moegate::gemm
