// SPDX-License-Identifier: Apache-2.0
// What prefill's blocks agree on: who does what, what lies in shared memory, the order of tiles.
#pragma once

#include <type_traits>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma_s8.cuh"
#include "kernels/moe_gemm/fp8/output_tile.cuh"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/prefill/order.h"

namespace moegate::moe_gemm::prefill {

using namespace cuda;

constexpr int kProducts = kColumns / kProductColumns;
constexpr int kSums = kProductColumns / 2;  // of a product, per thread
/// Of lane l of warp w of a multiplying warpgroup, element i of a product: row 16 * w + l / 4, and
/// 8 more where i / 2 is odd; column i / 4 * 8 + l % 4 * 2 + i % 2.
using Sums = float[kProducts][kSums];
constexpr int kWeightBytes = kColumns * kMoeGroup, kHalfRowBytes = kHalfTokens * kMoeGroup;
constexpr int kStageBytes = kWeightBytes + 2 * kHalfRowBytes;

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

/// Scale factors of a stage's weights, and with the last stage of a tile the routing weights. Those
/// of rows are in RowFactorPlaces.
struct Factors {
  float routing[kTokens], weights[4];
};

/// Where rows' scale factors lie that change every kMoeGroup of K. They come for as many stages at
/// once as a copy of up to 16 bytes brings: lanes whose 4 bytes lie in different lines take turns
/// at shared memory, up to 257 cycles of the 1024 that a stage has.
struct RowFactorPlaces {
  static constexpr int kStages = 8;  // that have a place: a ring's and a batch's, or more
  static constexpr int kFloats = kStages * kTokens;
  uint32_t batch;  // stages of a copy: 1, 2 or 4

  __device__ explicit RowFactorPlaces(const MoeGemmShape& shape)
      : batch(shape.k_groups() % 4 == 0   ? 4
              : shape.k_groups() % 2 == 0 ? 2
                                          : 1) {}
  /// In floats, of row 0 in the stage that is `stages` after the first one of all; rows are `batch`
  /// apart.
  __device__ uint32_t get(uint32_t stages) const {
    const uint32_t place = stages % kStages, in_batch = place & (batch - 1);
    return (place - in_batch) * kTokens + in_batch;
  }
  __device__ bool starts(uint32_t stages) const { return (stages & (batch - 1)) == 0; }
};

/// The same where factors follow the sum over all of K: of columns, and with a tile's last stage
/// alone.
struct FactorsOnce {
  float rows[kTokens], routing[kTokens], columns[kColumns];  // routing right behind rows
};
/// And the columns' biases in bf16, right behind. Beyond the last column they are undefined.
struct FactorsAndBias : FactorsOnce {
  alignas(16) uint8_t bias[kColumns * 2];
};
static_assert(sizeof(FactorsAndBias) == sizeof(FactorsOnce) + kColumns * 2);

/// What becomes of a tile's sums is a type, and an object of it an argument of the kernel:
/// - kStages, kStagedBytes: what shared memory holds, the latter of half a tile's output
/// - kGateWithUp: the second product's columns are N/2 behind the first one's, not next to them
/// - kRowsFirst: whether tiles follow each other down all rows, then across the columns
/// - stage(): a multiplying warpgroup leaves its sums in shared memory
/// - start(): a warp starts the copies of what was staged
/// - kScaledOnce: whether scale factors follow the sum over all of K
/// - kBiased: whether `bias` [E, N] then follows them
/// - kWhole: whether sums stay in the tensor cores' registers over all of K; such are scaled once
/// - kInt8: whether operands are int8, whose sums are whole
template <class Out>
constexpr bool kScaledOnce = false;
template <class Out>
constexpr bool kBiased = false;
template <class Out>
constexpr bool kWhole = false;
template <class Out>
constexpr bool kInt8 = false;

/// What a stage has beside its operands.
template <class Out>
using StageFactors = std::conditional_t<kBiased<Out>, FactorsAndBias,
                                        std::conditional_t<kScaledOnce<Out>, FactorsOnce, Factors>>;

template <class Out>
struct Shared {
  static constexpr int kStages = Out::kStages;
  uint8_t stages[kStages][kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[2][Out::kStagedBytes];
  StageFactors<Out> factors[kStages];
  static_assert(kStages + 4 <= RowFactorPlaces::kStages);
  alignas(16) float row_factors[kScaledOnce<Out> ? 1 : RowFactorPlaces::kFloats];
  int halves[kStages];  // of the tile that have rows
  uint64_t full[kStages], empty[kStages];
  uint64_t staged_full[2], staged_empty[2];  // per warpgroup that multiplies
};

template <class Out>
__device__ ProductColumns product_columns(const MoeGemmShape& shape, const Place& place) {
  return Out::kGateWithUp ? ProductColumns::gate_with_up(place, shape.n)
                          : ProductColumns::next_to_each_other(place);
}

/// Whether most experts have rows for a whole block.
MOEGATE_HD inline bool fills_blocks(const MoeGemmShape& shape) {
  return shape.rows() >= kTokens * shape.experts;
}

/// All thread blocks, or clusters, work side by side through the list of tiles.
template <int kCluster, class Out>
struct Tiles {
  TileOrder<kCluster, Out::kRowsFirst> order;
  int all, rank, first, step;

  // Of blocks that are not filled the second halves have no rows: dividing them gains nothing.
  __device__ explicit Tiles(const MoeGemmArgs& args)
      : order{__ldg(args.padded_rows) / kTokens, (args.shape.n + kColumns - 1) / kColumns,
              fills_blocks(args.shape) ? static_cast<int>(gridDim.x) / kCluster : 1},
        all(order.all()),
        rank(kCluster == 1 ? 0 : cluster_rank()),
        first(blockIdx.x / kCluster),
        step(gridDim.x / kCluster) {}
  __device__ Place get(int index) const { return order.get(index, rank); }
  __device__ bool is_there(const Place& place) const { return place.row < order.blocks * kTokens; }
  /// A neighbour that is not there reads what the last block reads.
  __device__ Place existing(Place place) const {
    if (!is_there(place)) place.row -= kTokens;
    return place;
  }
  __device__ int neighbour(int block) const { return min(block ^ 1, order.blocks - 1); }
};

}  // namespace moegate::moe_gemm::prefill
