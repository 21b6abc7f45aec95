// SPDX-License-Identifier: Apache-2.0
// What wide_tiles computes with: its tiles, its stages in shared memory, and the product of a tile
// by two warpgroups that take turns at the tensor cores.
#pragma once

#include <cstddef>

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/turns.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/moe_gemm/fp8/output_tile.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::wide_tiles {

using namespace cuda;

constexpr int kColumns = 256;         // of a tile: rows of weights
constexpr int kProductColumns = 128;  // of a product; its M is 64 rows
constexpr int kProductBytes = kProductColumns * kMoeGroup, kProductRowBytes = 64 * kMoeGroup;
constexpr int kWeightBytes = kColumns * kMoeGroup;  // of a stage
constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;

template <int Tokens>
struct Config {
  static constexpr int kStages = Tokens == 128 ? 4 : 5;
  static constexpr int kStageBytes = kWeightBytes + Tokens * kMoeGroup;
  static constexpr int kRowsPerThread = Tokens * 8 / kProducers;  // 16 bytes of each
};

template <int Tokens>
struct Shared {
  using C = Config<Tokens>;
  uint8_t stages[C::kStages][C::kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[kConsumers / 32][fp8::kWarpStagedBytes];  // of the output, per warp
  float row_scales[C::kStages][Tokens];
  uint64_t full[C::kStages], empty[C::kStages];
};

struct Tile {
  int block, expert, column;
};

/// All thread blocks work side by side through the list, columns first: blocks of rows of one
/// expert find its weights in L2.
struct Tiles {
  int columns, all;
  __device__ explicit Tiles(const MoeGemmArgs& args)
      : columns((args.shape.n + kColumns - 1) / kColumns),
        all(*args.padded_rows / args.shape.block * columns) {}
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int block = index / columns;
    return {block, __ldg(args.expert_ids + block), index % columns * kColumns};
  }
};

__device__ inline float load_shared(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// acc = the product of 64 rows and 128 columns over 128 of K, under way.
__device__ inline void start_product(uint32_t a, uint32_t b, float (&acc)[kProductColumns / 2]) {
  const int warpgroup = threadIdx.x / 128;
  wait_turn(warpgroup);
  start_group<kProductColumns>(acc, a, b);
  pass_turn(warpgroup);
}

/// What a warpgroup multiplies: of a block of 128 rows each has 64, with all columns; of one of 64
/// it has all rows, with half of the columns.
template <int Tokens>
struct Part {
  static constexpr int kProducts = Tokens / 64;
  int row, first_product;  // the warp's first row; in units of 128 columns
  __device__ Part()
      : row((Tokens == 128 ? threadIdx.x / 128 * 64 : 0) + threadIdx.x / 32 % 4 * 16),
        first_product(Tokens == 128 ? 0 : threadIdx.x / 128) {}
};

/// A stage that a warpgroup has waited for.
template <int Tokens>
struct Ready {
  uint32_t rows, weights;                    // operands
  float scales[Part<Tokens>::kProducts][2];  // of rows l / 4 and 8 more, times the weights'
};

/// The scale factors of a tile's weights, read ahead by one group of K.
template <int Tokens>
struct WeightScales {
  static constexpr int kProducts = Part<Tokens>::kProducts;
  const float* at[kProducts];
  float next[kProducts];
  int left;  // groups

  __device__ WeightScales(const MoeGemmArgs& args, const Tile& tile, const Part<Tokens>& part)
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

template <int Tokens>
__device__ Ready<Tokens> wait_stage(uint32_t shared, const Ring& ring, const Part<Tokens>& part,
                                    WeightScales<Tokens>& weight_scales) {
  using S = Shared<Tokens>;
  const uint32_t stage = shared + ring.stage * Config<Tokens>::kStageBytes;
  wait_barrier(shared + static_cast<uint32_t>(offsetof(S, full)) + ring.stage * 8, ring.phase);
  fence_for_products();
  Ready<Tokens> ready;
  ready.rows = operand(stage + kWeightBytes + part.row / 64 * kProductRowBytes);
  ready.weights = operand(stage + part.first_product * kProductBytes);
  const uint32_t scales = shared + static_cast<uint32_t>(offsetof(S, row_scales)) +
                          (ring.stage * Tokens + part.row + threadIdx.x % 32 / 4) * 4;
  const float first = load_shared(scales), second = load_shared(scales + 8 * 4);
#pragma unroll
  for (int p = 0; p < Part<Tokens>::kProducts; ++p) {
    ready.scales[p][0] = first * weight_scales.next[p];
    ready.scales[p][1] = second * weight_scales.next[p];
  }
  weight_scales.advance();
  return ready;
}

/// A tile from a warpgroup's side; what it needs is asked for here, long before it is used.
template <int Tokens>
struct Job {
  Tile tile;
  int id;         // of row l % 16 of the warp's
  bool has_rows;  // padding is at a block's end: where the first row has none, all are
  WeightScales<Tokens> weight_scales;

  __device__ Job(const MoeGemmArgs& args, const Tiles& tiles, int index, const Part<Tokens>& part)
      : tile(tiles.get(args, index)), weight_scales(args, tile, part) {
    const int32_t* ids = args.sorted_token_ids + tile.block * Tokens + part.row;
    id = __ldg(ids + threadIdx.x % 16);
    has_rows = __ldg(ids - part.row % 64) < args.shape.rows();
  }
};

template <int Tokens>
__device__ void multiply_tile(int groups, Job<Tokens>& job, const Part<Tokens>& part,
                              Shared<Tokens>& memory, uint32_t shared, Ring& ring,
                              float (&sums)[Part<Tokens>::kProducts][kProductColumns / 2]) {
  constexpr int kProducts = Part<Tokens>::kProducts;
  Ready<Tokens> ready = wait_stage<Tokens>(shared, ring, part, job.weight_scales);
  for (int g = 0; g < groups; ++g) {
    const Ready<Tokens> now = ready;
    uint64_t* empty = &memory.empty[ring.stage];
    ring.advance();
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      float acc[kProductColumns / 2];
      start_product(now.rows, now.weights + p * (kProductBytes >> 4), acc);
      // The next stage's turn comes while the tensor cores work.
      if (p == kProducts - 1 && g + 1 < groups)
        ready = wait_stage<Tokens>(shared, ring, part, job.weight_scales);
      wait_products();
      __syncwarp();
      if (p == kProducts - 1 && threadIdx.x % 32 == 0) arrive_barrier(empty);
#pragma unroll
      for (int i = 0; i < kProductColumns / 2; ++i) sums[p][i] += acc[i] * now.scales[p][i / 2 % 2];
    }
  }
}

/// For a warpgroup whose rows are all padding.
template <int Tokens>
__device__ void pass_tile(int groups, Shared<Tokens>& memory, Ring& ring) {
  for (int g = 0; g < groups; ++g, ring.advance()) {
    for (int p = 0; p < Part<Tokens>::kProducts; ++p) {
      wait_turn(threadIdx.x / 128);
      pass_turn(threadIdx.x / 128);
    }
    wait_barrier(&memory.full[ring.stage], ring.phase);
    if (threadIdx.x % 32 == 0) arrive_barrier(&memory.empty[ring.stage]);
  }
}

}  // namespace moegate::moe_gemm::wide_tiles
