// SPDX-License-Identifier: Apache-2.0
// The product of a tile of fp8, by two warpgroups that take turns at the tensor cores: accumulators
// go to fp32 sums, times both scale factors, while the other warpgroup's product runs.
#pragma once

#include <cstddef>

#include "kernels/cuda/turns.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/moe_gemm/wide_tiles/tiles.cuh"

namespace moegate::moe_gemm::wide_tiles {

__device__ inline float load_shared(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// acc = the product of 64 rows and a slice's columns, under way.
template <int Columns>
__device__ void start_product(uint32_t a, uint32_t b, float (&acc)[Columns / 2]) {
  const int warpgroup = threadIdx.x / 128;
  wait_turn(warpgroup);
  start_group<Columns>(acc, a, b);
  pass_turn(warpgroup);
}

/// A stage that a warpgroup has waited for.
template <class C>
struct Ready {
  uint32_t rows, weights;         // operands
  float scales[C::kProducts][2];  // of rows l / 4 and 8 more, times the weights'
};

template <class C>
__device__ Ready<C> wait_stage(uint32_t shared, const Ring& ring, const Part<C>& part,
                               WeightScales<C>& weight_scales) {
  using S = Shared<C>;
  const uint32_t stage = shared + ring.stage * C::kStageBytes;
  wait_barrier(shared + static_cast<uint32_t>(offsetof(S, full)) + ring.stage * 8, ring.phase);
  fence_for_products();
  Ready<C> ready;
  ready.rows = operand(stage + C::kWeightBytes + part.row / 64 * C::kPartRowBytes);
  ready.weights = operand(stage + part.first_product * C::kProductBytes);
  const uint32_t scales = shared + static_cast<uint32_t>(offsetof(S, row_scales)) +
                          (ring.stage * C::kTokens + part.row + threadIdx.x % 32 / 4) * 4;
  const float first = load_shared(scales), second = load_shared(scales + 8 * 4);
#pragma unroll
  for (int p = 0; p < C::kProducts; ++p) {
    ready.scales[p][0] = first * weight_scales.next[p];
    ready.scales[p][1] = second * weight_scales.next[p];
  }
  weight_scales.advance();
  return ready;
}

template <class C>
__device__ void multiply_scaled(int slices, Job<C>& job, const Part<C>& part, Shared<C>& memory,
                                uint32_t shared, Ring& ring, Sums<C>& sums) {
  constexpr int kProducts = C::kProducts;
  Ready<C> ready = wait_stage<C>(shared, ring, part, job.weight_scales);
  for (int slice = 0; slice < slices; ++slice) {
    const Ready<C> now = ready;
    uint64_t* empty = &memory.empty[ring.stage];
    ring.advance();
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      float acc[C::kProductColumns / 2];
      start_product<C::kProductColumns>(now.rows, now.weights + p * (C::kProductBytes >> 4), acc);
      // The next stage's turn comes while the tensor cores work.
      if (p == kProducts - 1 && slice + 1 < slices)
        ready = wait_stage<C>(shared, ring, part, job.weight_scales);
      wait_products();
      __syncwarp();
      if (p == kProducts - 1 && threadIdx.x % 32 == 0) arrive_barrier(empty);
#pragma unroll
      for (int i = 0; i < C::kProductColumns / 2; ++i)
        sums[p][i] += acc[i] * now.scales[p][i / 2 % 2];
    }
  }
}

/// For a warpgroup whose rows are all padding.
template <class C>
__device__ void pass_turns() {
  for (int p = 0; p < C::kProducts; ++p) {
    wait_turn(threadIdx.x / 128);
    pass_turn(threadIdx.x / 128);
  }
}

}  // namespace moegate::moe_gemm::wide_tiles
