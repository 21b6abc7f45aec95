// SPDX-License-Identifier: Apache-2.0
// The activation and its quantisation as what becomes of gate-up's sums (moe_gemm/prefill): a
// tile's first product is 128 gates, its second the ups of the same columns, so that a group of 128
// with one scale factor is in the registers of four lanes. Rounded where the chain of both steps
// rounds; the codes are those of silu_mul_quant's `fused`, bit by bit.
#pragma once

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/fused_moe/fused_moe.h"
#include "kernels/moe_gemm/prefill/plan.cuh"
#include "kernels/silu_mul_quant/quantise.cuh"

namespace moegate::fused_moe {

using namespace cuda;
namespace prefill = moe_gemm::prefill;

/// Codes and scale factors in sorted order. Rows of padding in a half block that has others are
/// written, too: nobody reads them but for rows of padding of the next product.
struct Activations {
  static constexpr int kStages = 4;  // 128 codes of a row take a quarter of 256 columns of bf16
  static constexpr int kStagedBytes = prefill::kHalfTokens * kMoeGroup;
  static constexpr bool kGateWithUp = true, kRowsFirst = false;

  CUtensorMap codes;  // [capacity, I], in tiles of half a block x 128
  float* scales;      // [capacity, I/128]
  int32_t* places;    // [R]: of each row r; null: nobody asks
  uint64_t unused[alignof(CUtensorMap) / 8 - 2] = {};  // in place of padding

  __device__ void stage(const moe_gemm::MoeGemmShape& shape, const prefill::Place& place,
                        prefill::Sums& sums, const float (&)[2], uint32_t staged) const {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;  // of the tile, and 8 more
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float scale = silu_mul_quant::scale_of(activate(sums, i));
      put_codes(sums, i, 1 / scale, staged + (row + i * 8) % prefill::kHalfTokens * 128);
      if (threadIdx.x % 4 != 0) continue;
      const int64_t to = int64_t{place.row} + row + i * 8;
      scales[to * (shape.n / (2 * kMoeGroup)) + place.column / (2 * kMoeGroup)] = scale;
    }
  }

  __device__ void start(const moe_gemm::MoeGemmShape& shape, const prefill::Place& place, int half,
                        const int (&ids)[2], uint32_t staged) const {
    const int lane = threadIdx.x % 32;
    const int first = place.row + half * prefill::kHalfTokens;
    if (lane == 0) write_tile(&codes, place.column / 2, first, staged);
    if (!places || place.column > 0) return;
    for (int i = 0; i < 2; ++i)
      if (ids[i] < shape.rows()) places[ids[i]] = first + lane + i * 32;
  }

 private:
  /// As h would hold them.
  static __device__ float2 rounded(float low, float high) {
    const uint32_t pair = pack_bf16(low, high);
    return {bits_float(pair << 16), bits_float(pair & 0xffff0000u)};
  }

  /// Activations in place of the gates of the thread's row i, and the largest of the group.
  static __device__ float activate(prefill::Sums& sums, int i) {
    float amax = silu_mul_quant::kLeastAmax;
#pragma unroll
    for (int j = 0; j < prefill::kSums; j += 4) {
      float* gates = sums[0] + j + 2 * i;
      const float* ups = sums[1] + j + 2 * i;
      const float2 gate = rounded(gates[0], gates[1]), up = rounded(ups[0], ups[1]);
      gates[0] = silu_mul_quant::activation(gate.x, up.x);
      gates[1] = silu_mul_quant::activation(gate.y, up.y);
      amax = fmaxf(amax, fmaxf(fabsf(gates[0]), fabsf(gates[1])));
    }
    amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, 1));
    return fmaxf(amax, __shfl_xor_sync(~0u, amax, 2));
  }

  /// The thread's codes of its row i, to a row of 128 bytes with the swizzle of 128 bytes.
  static __device__ void put_codes(const prefill::Sums& sums, int i, float inverse, uint32_t row) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < prefill::kSums / 4; ++j) {
      const uint32_t pair =
          silu_mul_quant::quantised(sums[0][j * 4 + i * 2], sums[0][j * 4 + i * 2 + 1], inverse);
      store_shared(row + (j / 2 ^ lane / 4) * 16 + j % 2 * 8 + lane % 4 * 2, pair);
    }
  }

  static __device__ void store_shared(uint32_t to, uint32_t pair) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(static_cast<uint16_t>(pair)) : "memory");
  }
};
static_assert(std::has_unique_object_representations_v<Activations>, "a row's identity");

}  // namespace moegate::fused_moe
