// SPDX-License-Identifier: Apache-2.0
// What prefill's blocks agree on: who does what, what lies in shared memory, the order of tiles.
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/turns.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/moe_gemm/fp8/output_tile.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::prefill {

using namespace cuda;

constexpr int kTokens = 128, kHalfTokens = kTokens / 2;  // routed rows of a tile, of a warpgroup
constexpr int kColumns = 256;                            // of a tile: rows of weights
constexpr int kProductColumns = 128, kProducts = kColumns / kProductColumns;
constexpr int kSums = kProductColumns / 2;  // of a product, per thread
constexpr int kWeightBytes = kColumns * kMoeGroup, kHalfRowBytes = kHalfTokens * kMoeGroup;
constexpr int kStageBytes = kWeightBytes + 2 * kHalfRowBytes;
constexpr int kStagedPitch = kColumns * 2 + 16;  // of an output row; no bank conflicts in stmatrix
constexpr int kStages = 3;                       // what the staged output leaves room for

/// Where rows of x lie: at their tokens' places, from where threads gather them, or in sorted
/// order, where the copy engine takes half a block at once.
enum class Order { tokens, sorted };

/// Two warpgroups multiply, in token order one gathers, of the last one two warps copy the rest
/// and two write.
template <Order kOrder>
struct Roles {
  static constexpr int kMultipliers = 256, kGatherers = kOrder == Order::tokens ? 128 : 0;
  static constexpr int kCopiers = 64, kWriters = 64;
  static constexpr int kFirstCopier = kMultipliers + kGatherers;
  static constexpr int kFirstWriter = kFirstCopier + kCopiers;
  static constexpr int kThreads = kFirstWriter + kWriters;
  // A launch gives every thread 128 or 168; what these leave, those take.
  static constexpr int kOtherRegisters = kOrder == Order::tokens ? 40 : 56;
  static constexpr int kMultiplierRegisters = kOrder == Order::tokens ? 216 : 224;
};

/// Scale factors of a stage, and with the last stage of a tile the routing weights.
struct Factors {
  float rows[kTokens], routing[kTokens], weights[4];
};

/// Whose rows a stage has.
enum Halves : int { kNoHalf, kFirstHalf, kBothHalves };

struct Shared {
  uint8_t stages[kStages][kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[2][kHalfTokens * kStagedPitch];
  Factors factors[kStages];
  int halves[kStages];
  uint64_t full[kStages], empty[kStages];
  uint64_t staged_full[2], staged_empty[2];  // per warpgroup that multiplies
};

struct Place {
  int block, column;
};

/// All thread blocks, or clusters, work side by side through the list of tiles, columns first:
/// blocks of rows of one expert find its weights in L2. The blocks of a cluster of two have
/// neighbouring blocks of rows and the same columns.
template <int kCluster>
struct Tiles {
  int blocks, columns, all, rank, first, step;

  __device__ explicit Tiles(const MoeGemmArgs& args)
      : blocks(__ldg(args.padded_rows) / kTokens),
        columns((args.shape.n + kColumns - 1) / kColumns),
        all((blocks + kCluster - 1) / kCluster * columns),
        rank(kCluster == 1 ? 0 : cluster_rank()),
        first(blockIdx.x / kCluster),
        step(gridDim.x / kCluster) {}
  __device__ Place get(int index) const {
    const int block = index / columns;
    return {block * kCluster + rank, (index - block * columns) * kColumns};
  }
  /// The last block of an odd number has a neighbour without rows, which reads what it reads.
  __device__ bool is_there(const Place& place) const { return place.block < blocks; }
  __device__ int existing(int block) const { return min(block, blocks - 1); }
};

}  // namespace moegate::moe_gemm::prefill
