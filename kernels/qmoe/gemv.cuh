// SPDX-License-Identifier: Apache-2.0
// The product of one routed row with 32 columns of its expert, by a block of 128 threads: device
// code of the GEMV variants, which differ in what becomes of the sums. Reads the packed weights
// (interleaved_layout.cuh). Grid: (rows, N/32, splits of K).
//
// Per K iteration a thread owns 32 consecutive k of one column in each of 8 groups of 4 columns: 8
// loads of 16 bytes, all in flight before the first is used, and one x for all of them. Where K is
// no multiple of 1024, threads whose chunk would lie beyond it leave the loop one iteration early.
//
// - Accumulator half: weights are (q - 8) * scale rounded to half, then multiplied and summed by
//   half2 fma over all K iterations, even and odd k apart. Scaling first keeps the sums near the
//   size of the output; those of q - 8 could pass 65504.
// - Accumulator float: (q - 8) and x are converted exactly, scale factors multiply sums: of 32
//   elements where they are per block of K, of all where they are per channel.
// Both add up threads and warps in float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/streaming.cuh"
#include "kernels/qmoe/eligibility.h"
#include "kernels/qmoe/interleaved_layout.cuh"

namespace moegate::qmoe {

using namespace cuda;

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = ~0u;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kGroups = kTileColumns / kGroupColumns;  // of columns, per block
constexpr int kBlocksPerSm = 6;                        // leaves 80 registers to a thread
static_assert(kThreads * kChunkK == kIterationK * kGroupColumns);

__device__ inline uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ inline __half2 as_half2(uint32_t bits) {
  return *reinterpret_cast<const __half2*>(&bits);
}

/// Two neighbours of type X as floats.
template <class X>
__device__ float2 widen_pair(uint32_t bits) {
  if constexpr (std::is_same_v<X, __half>) return __half22float2(as_half2(bits));
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000));
}

template <class X>
__device__ float widen(uint16_t bits) {
  if constexpr (std::is_same_v<X, __half>) return __half2float(__ushort_as_half(bits));
  return __bfloat162float(__ushort_as_bfloat16(bits));
}

template <class X>
__device__ uint16_t narrow(float value) {
  if constexpr (std::is_same_v<X, __half>) return __half_as_ushort(__float2half_rn(value));
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

/// (word & mask) | magic in one instruction.
__device__ inline __half2 mask_into(uint32_t word, uint32_t mask, uint32_t magic) {
  constexpr int kAndOr = (0xf0 & 0xcc) | 0xaa;
  uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(bits) : "r"(word), "r"(mask), "r"(magic), "n"(kAndOr));
  return as_half2(bits);
}

/// The 8 codes of a packed word minus 8, exactly. A code in the lowest bits of the half 1024 adds
/// itself to it, one four bits further up 16 times itself.
__device__ inline void unpack(uint32_t word, __half2 (&q)[4]) {
  constexpr uint32_t k1024 = 0x64006400, kLow = 0x000f000f, kHigh = 0x00f000f0;
  const __half2 low_zero = __float2half2_rn(1024 + 8), high_zero = __float2half2_rn(-(64 + 8));
  const __half2 sixteenth = __float2half2_rn(1.0f / 16);
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    q[i] = __hsub2(mask_into(word, kLow, k1024), low_zero);
    q[i + 1] = __hfma2(mask_into(word, kHigh, k1024), sixteenth, high_zero);
    word >>= 8;
  }
}

/// What a thread reads in one K iteration.
struct Chunk {
  uint4 codes[kGroups];  // 32 k of a column in each group
  uint4 x[4];            // the same 32 k, 16 bits each
};

/// The scale factors of a thread's columns, two to a register.
struct Scales {
  uint32_t pairs[kGroups / 2];

  __device__ void load(const uint16_t* from) {
#pragma unroll
    for (int i = 0; i < kGroups / 2; ++i) {
      const uint32_t low = __ldg(from + 2 * i * kGroupColumns);
      pairs[i] = low | uint32_t{__ldg(from + (2 * i + 1) * kGroupColumns)} << 16;
    }
  }
  __device__ uint16_t of(int g) const {
    return static_cast<uint16_t>(pairs[g / 2] >> (g % 2 * 16));
  }
};

/// sums += scaled weights * x in half.
__device__ inline void add_products(const Chunk& chunk, const Scales& scales,
                                    __half2 (&sums)[kGroups]) {
#pragma unroll
  for (int word = 0; word < 4; ++word) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const __half2 scale = __half2half2(__ushort_as_half(scales.of(g)));
      __half2 q[4];
      unpack(word_of(chunk.codes[g], word), q);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[g] = __hfma2(__hmul2(q[i], scale), as_half2(word_of(chunk.x[word], i)), sums[g]);
      }
    }
  }
}

/// sums += (q - 8) * x in float. By words outside, so that only 8 of the 32 x are floats at a time.
template <class X>
__device__ void add_products(const Chunk& chunk, float (&sums)[kGroups]) {
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    float2 x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = widen_pair<X>(word_of(chunk.x[word], i));
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      __half2 q[4];
      unpack(word_of(chunk.codes[g], word), q);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 w = __half22float2(q[i]);
        sums[g] = fmaf(w.x, x[i].x, sums[g]);
        sums[g] = fmaf(w.y, x[i].y, sums[g]);
      }
    }
  }
}

/// A thread's sums, one per group. X: type of activations and scales.
template <class X, class Acc, bool Blocked>
struct Sums;

template <bool Blocked>
struct Sums<__half, __half, Blocked> {
  __half2 sums[kGroups] = {};

  __device__ void add(const Chunk& chunk, const Scales& scales) {
    add_products(chunk, scales, sums);
  }
  __device__ float of(int g) const { return __low2float(sums[g]) + __high2float(sums[g]); }
};

/// Per channel, `scales` are left to the end.
template <class X, bool Blocked>
struct Sums<X, float, Blocked> {
  float sums[kGroups] = {};

  __device__ void add(const Chunk& chunk, const Scales& scales) {
    if constexpr (Blocked) {
      float parts[kGroups] = {};
      add_products<X>(chunk, parts);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) sums[g] = fmaf(parts[g], widen<X>(scales.of(g)), sums[g]);
    } else {
      add_products<X>(chunk, sums);
    }
  }
  __device__ float of(int g) const {
    return sums[g];
  }
};

/// Adds up `values` over the lanes that share a column (bits 0, 3 and 4 of the lane differ), each
/// exchange halving what a lane goes on with: seven shuffles in place of 24. Returns the sum of
/// one column, its number in the tile in `column`.
__device__ inline float sum_lanes(float (&values)[kGroups], int lane, int& column) {
  column = lane / 2 % kGroupColumns;
#pragma unroll
  for (int half = kGroups / 2, bit = 16; half > 0; half /= 2, bit = bit == 8 ? 1 : bit / 2) {
    const bool upper = (lane & bit) != 0;
    if (upper) column += half * kGroupColumns;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float keep = upper ? values[i + half] : values[i];
      const float give = upper ? values[i] : values[i + half];
      values[i] = keep + __shfl_xor_sync(kAllLanes, give, bit);
    }
  }
  return values[0];
}

/// Column threadIdx.x of the block's tile, summed over the K iterations blockIdx.z, blockIdx.z +
/// Splits, ... and scaled; for the threads of the first warp, the others get nothing.
template <class X, class Acc, bool Blocked, int Splits>
__device__ float tile_product(const QmoeArgs& args, const Interleaved& weights) {
  __shared__ float warp_sums[kWarps][kTileColumns];
  const int k = args.shape.k, n = args.shape.n, row = blockIdx.x;
  const int thread = threadIdx.x, lane = thread % kWarp, first_column = blockIdx.y * kTileColumns;
  const int64_t expert = args.row_expert[row];
  const uint16_t* x = args.x + int64_t{args.row_source[row]} * k;
  const unsigned chunks = k / kChunkK * kGroupColumns;  // of a group of columns
  const uint4* codes = weights.codes + (expert * n + first_column) / kGroupColumns * chunks;
  const int block_bits = 31 - __clz(args.shape.block);  // per channel: unused
  const int64_t first_scale = expert * (Blocked ? k >> block_bits : 1) * n + first_column;
  const uint16_t* scales = weights.scales + first_scale + lane / 2 % kGroupColumns;

  constexpr bool kScaleLast = std::is_same_v<Acc, float> && !Blocked;
  Sums<X, Acc, Blocked> sums;
  Scales scale;
  if constexpr (!Blocked && !kScaleLast) scale.load(scales);
#pragma unroll 1
  for (unsigned i = blockIdx.z * kThreads + thread; i < chunks; i += Splits * kThreads) {
    const unsigned at_k = i / 8 * kTileK + i % 2 * kChunkK;
    Chunk chunk;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) chunk.codes[g] = load_streaming(codes + (g * chunks + i));
    if constexpr (Blocked) scale.load(scales + (at_k >> block_bits) * n);
#pragma unroll
    for (int j = 0; j < 4; ++j) chunk.x[j] = __ldg(reinterpret_cast<const uint4*>(x + at_k) + j);
    sums.add(chunk, scale);
  }
  __syncwarp();

  float values[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) values[g] = sums.of(g);
  int column;
  const float of_warp = sum_lanes(values, lane, column);
  warp_sums[thread / kWarp][column] = of_warp;
  __syncthreads();
  if (thread >= kTileColumns) return 0;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp][thread];
  if constexpr (kScaleLast) {
    sum *= widen<X>(weights.scales[first_scale + thread]);
  }
  return sum;
}

__device__ inline float swiglu(const QmoeShape& shape, float gate, float up) {
  gate = fminf(gate, shape.limit);
  up = fminf(fmaxf(up, -shape.limit), shape.limit);
  return gate / (1 + __expf(-shape.alpha * gate)) * (up + shape.beta);
}

/// The bias of column n of the row's expert, 0 without.
template <class X>
__device__ float bias_of(const QmoeArgs& args, int row, int n) {
  if (!args.bias) return 0;
  return widen<X>(args.bias[int64_t{args.row_expert[row]} * args.shape.n + n]);
}

/// Calls call.operator()<Acc, Blocked>() for what the case and the variant need.
template <class Call>
void with_types(const QmoeShape& shape, Accumulator accumulator, Call call) {
  const bool blocked = shape.block != shape.k;
  if (accumulator == Accumulator::fp16) {
    blocked ? call.template operator()<__half, true>() : call.template operator()<__half, false>();
  } else {
    blocked ? call.template operator()<float, true>() : call.template operator()<float, false>();
  }
}

}  // namespace moegate::qmoe
