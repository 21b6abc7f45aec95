// SPDX-License-Identifier: Apache-2.0
// The instructions that stream_imma is made of: the product of int8 on tensor cores, loads, and its
// two 16-bit types.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/barrier.cuh"

namespace moegate::qmoe {

using namespace cuda;

struct Half {
  static __device__ float2 widen(uint32_t pair) {
    return __half22float2(reinterpret_cast<const __half2&>(pair));
  }
  static __device__ uint16_t narrow(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
};

struct Bfloat {
  static __device__ float2 widen(uint32_t pair) {
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
  }
  static __device__ uint16_t narrow(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

/// Accumulators of one m16n8k32 product of int8: row l / 4, columns 2 * (l % 4) and the next, then
/// the same of row l / 4 + 8.
struct Accumulator {
  int c[4];
};

/// from + weights * x, exact. The weights are 8 bytes of a tile (stream_layout.h): their upper
/// and lower halves, each with four zero bits behind it, are the int8 operand, so the product is
/// 16-fold.
__device__ inline Accumulator multiply(uint32_t low_k, uint32_t high_k, uint32_t x_low,
                                       uint32_t x_high, const Accumulator& from) {
  constexpr uint32_t kUpper = 0xf0f0f0f0;
  Accumulator d;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=r"(d.c[0]), "=r"(d.c[1]), "=r"(d.c[2]), "=r"(d.c[3])
      : "r"(low_k & kUpper), "r"((low_k << 4) & kUpper), "r"(high_k & kUpper),
        "r"((high_k << 4) & kUpper), "r"(x_low), "r"(x_high), "r"(from.c[0]), "r"(from.c[1]),
        "r"(from.c[2]), "r"(from.c[3]));
  return d;
}

/// What another kernel may have written while this one ran.
__device__ inline unsigned load_from_l2(const int32_t* from) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// Has L2 fetch what lies there. Address and size are multiples of 16 bytes.
__device__ inline void prefetch_to_l2(const void* from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

}  // namespace moegate::qmoe
