// SPDX-License-Identifier: Apache-2.0
// What prefill's two multiplying warpgroups do. Each has 64 rows of a tile with all columns; they
// touch no global memory, so that nothing but operands is waited for.
#pragma once

#include <cstddef>

#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

__device__ inline float load_shared(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// What a multiplying warp knows of shared memory: addresses, computed once. In the loop each would
/// take some hundred cycles, between the end of a product and the start of the next.
template <int kCluster, class Out>
struct Addresses {
  uint32_t rows, weights;  // operands of stage 0
  uint32_t full, factors;  // of stage 0
  uint32_t row_factors;
  uint32_t empty;  // of stage 0, in the block that is this lane's

  __device__ explicit Addresses(Shared<Out>& shared) {
    const uint32_t stages = shared_address(shared.stages);
    rows = uniform(operand(stages + kWeightBytes + warpgroup() * kHalfRowBytes));
    weights = uniform(operand(stages));
    full = uniform(shared_address(shared.full));
    factors = uniform(shared_address(shared.factors));
    row_factors = uniform(shared_address(shared.row_factors));
    empty = shared_address(shared.empty);
    if constexpr (kCluster > 1) empty = shared_address_of(empty, threadIdx.x % kCluster);
  }
  __device__ uint32_t factors_of(int stage) const {
    return factors + stage * static_cast<uint32_t>(sizeof(StageFactors<Out>));
  }
  __device__ void wait_full(const Ring& ring) const {
    wait_barrier(full + ring.stage * 8, ring.phase);
  }
  /// The stage may be filled again, in both blocks where weights are shared.
  __device__ void release(int stage) const {
    if constexpr (kCluster == 1) return arrive_warp(empty + stage * 8);
    __syncwarp();
    if (threadIdx.x % 32 < kCluster) arrive_at(empty + stage * 8);
  }
};

/// A lane has this row of its warpgroup's, and 8 further on.
__device__ inline int first_row() {
  return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
}
/// Of a lane's two rows.
struct RowFactors {
  float scales[kProducts][2];  // times the weights'
  float routing[2];

  /// `of_rows`: of row 0, rows `pitch` floats apart; `stage`: the stage's Factors.
  __device__ void load(uint32_t of_rows, uint32_t pitch, uint32_t stage, bool with_routing) {
    constexpr auto kWeightsAt = static_cast<uint32_t>(offsetof(Factors, weights));
    constexpr auto kRoutingAt = static_cast<uint32_t>(offsetof(Factors, routing));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t row = first_row() + i * 8;
      const float of_row = load_shared(of_rows + row * pitch * 4);
#pragma unroll
      for (int p = 0; p < kProducts; ++p)
        scales[p][i] = of_row * load_shared(stage + kWeightsAt + p * 4);
      if (with_routing) routing[i] = load_shared(stage + kRoutingAt + row * 4);
    }
  }
};

/// The two values of bf16 at an address in shared memory.
__device__ inline float2 load_bf16_pair(uint32_t address) {
  const uint32_t pair = __float_as_uint(load_shared(address));
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000)};
}

/// All of a tile's sums times their columns' factors, and the rows' put into `weights`, which the
/// output takes; or, where a bias follows, times both, plus the bias.
template <class Out>
__device__ void scale_once(uint32_t factors, bool with_routing, Sums& sums, float (&weights)[2]) {
  const uint32_t rows_at =
      factors + static_cast<uint32_t>(offsetof(FactorsOnce, rows)) + first_row() * 4;
  float of_rows[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    weights[i] = load_shared(rows_at + i * 8 * 4);
    if constexpr (kBiased<Out>) {
      of_rows[i] = weights[i];
      weights[i] = 1;
    }
    if (with_routing) weights[i] *= load_shared(rows_at + (kTokens + i * 8) * 4);
  }
  const uint32_t columns_at =
      factors + static_cast<uint32_t>(offsetof(FactorsOnce, columns)) + threadIdx.x % 4 * 2 * 4;
  const uint32_t bias_at =
      factors + static_cast<uint32_t>(sizeof(FactorsOnce)) + threadIdx.x % 4 * 2 * 2;
#pragma unroll
  for (int p = 0; p < kProducts; ++p) {
#pragma unroll
    for (int j = 0; j < kSums / 4; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float of_column = load_shared(columns_at + (p * kProductColumns + j * 8 + i) * 4);
        sums[p][j * 4 + i] *= of_column;
        sums[p][j * 4 + i + 2] *= of_column;
      }
      if constexpr (kBiased<Out>) {
        const float2 bias = load_bf16_pair(bias_at + (p * kProductColumns + j * 8) * 2);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& sum = sums[p][j * 4 + i];
          sum = sum * of_rows[i / 2] + (i % 2 == 0 ? bias.x : bias.y);
        }
      }
    }
  }
}

template <Order kOrder, int kCluster, class Out>
__device__ void multiply_tile(const MoeGemmArgs& args, const Addresses<kCluster, Out>& at,
                              Ring& ring, uint32_t stages, Sums& sums, RowFactors& factors) {
  const int groups = args.shape.k_groups();
  const RowFactorPlaces places(args.shape);
  for (int g = 0; g < groups; ++g, ring.advance()) {
    const uint32_t stage = ring.stage * (kStageBytes >> 4), a = at.rows + stage,
                   b = at.weights + stage;
    const uint32_t factors_at = at.factors_of(ring.stage);
    at.wait_full(ring);
    if (kOrder == Order::tokens) fence_for_products();
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      float acc[kSums];
      start_group<kProductColumns>(acc, a, b + p * (kProductColumns * kMoeGroup >> 4));
      if (p == 0 && !kScaledOnce<Out>)
        factors.load(at.row_factors + places.get(stages + g) * 4, places.batch, factors_at,
                     g == groups - 1 && args.routing_weights);
      wait_products();
      const bool scales = kScaledOnce<Out> && p == kProducts - 1 && g == groups - 1;
      if (p == kProducts - 1 && !scales) at.release(ring.stage);
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        if constexpr (kScaledOnce<Out>) {
          sums[p][i] += acc[i];
        } else {
          sums[p][i] += acc[i] * factors.scales[p][i / 2 % 2];
        }
      }
      if (scales) {
        scale_once<Out>(factors_at, args.routing_weights, sums, factors.routing);
        at.release(ring.stage);
      }
    }
  }
}

/// The same of sums that stay in the tensor cores' registers over all of K: nothing is added up
/// between products, so that both of a stage are under way at once.
template <int kCluster, class Out>
__device__ void multiply_whole_tile(const MoeGemmArgs& args, const Addresses<kCluster, Out>& at,
                                    Ring& ring, Sums& sums, float (&weights)[2]) {
  const int groups = args.shape.k_groups();
  std::conditional_t<kInt8<Out>, int, float> whole[kProducts][kSums] = {};
  for (int g = 0;; ++g) {
    const uint32_t stage = ring.stage * (kStageBytes >> 4), a = at.rows + stage,
                   b = at.weights + stage;
    at.wait_full(ring);
    fence_for_products();
#pragma unroll
    for (int p = 0; p < kProducts; ++p)
      start_group<kProductColumns>(whole[p], a, b + p * (kProductColumns * kMoeGroup >> 4), true);
    wait_products();
    if (g == groups - 1) break;
    at.release(ring.stage);
    ring.advance();
  }
#pragma unroll
  for (int p = 0; p < kProducts; ++p) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[p][i] = static_cast<float>(whole[p][i]);
  }
  scale_once<Out>(at.factors_of(ring.stage), args.routing_weights, sums, weights);
  at.release(ring.stage);
  ring.advance();
}

/// For a warpgroup whose rows are all padding.
template <int kCluster, class Out>
__device__ void pass_tile(int groups, const Addresses<kCluster, Out>& at, Ring& ring) {
  for (int g = 0; g < groups; ++g, ring.advance()) {
    at.wait_full(ring);
    at.release(ring.stage);
  }
}

template <Order kOrder, int kCluster, class Out>
__device__ void multiply_tiles(const MoeGemmArgs& args, const Out& out, Shared<Out>& shared) {
  const Tiles<kCluster, Out> tiles(args);
  if (tiles.first >= tiles.all) return;
  const int half = warpgroup();
  Ring ring{Out::kStages};
  uint32_t phase = 0;  // of the staged output
  const Addresses<kCluster, Out> at(shared);
  const int groups = args.shape.k_groups();
  uint32_t stages = 0;  // of the tiles before
  for (int index = tiles.first; index < tiles.all; index += tiles.step, stages += groups) {
    at.wait_full(ring);
    if (shared.halves[ring.stage] <= half) {
      pass_tile(groups, at, ring);
      continue;
    }
    Sums sums = {};
    RowFactors factors;
    factors.routing[0] = factors.routing[1] = 1;
    if constexpr (kWhole<Out>) {
      multiply_whole_tile(args, at, ring, sums, factors.routing);
    } else {
      multiply_tile<kOrder>(args, at, ring, stages, sums, factors);
    }
    wait_barrier(&shared.staged_empty[half], phase ^ 1);
    out.stage(args.shape, tiles.get(index), sums, factors.routing,
              shared_address(shared.staged[half]));
    fence_for_products();
    arrive_warp(&shared.staged_full[half]);
    phase ^= 1;
  }
}

}  // namespace moegate::moe_gemm::prefill
