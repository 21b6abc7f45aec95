// SPDX-License-Identifier: Apache-2.0
// The instructions that stream_mma is made of: decoding int4 to the operand of a tensor-core
// product, and the product.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace moegate::qmoe {

/// Operand A of one m16n8k16 product: 16 columns of weights times 16 of K, 8 values per lane.
struct Weights {
  uint32_t a[4];
};

/// (word & mask) | bits in one instruction; the compiler makes two of it when both are immediate.
template <uint32_t Mask>
__device__ uint32_t masked_or(uint32_t word, uint32_t bits) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(word), "n"(Mask), "r"(bits));
  return d;
}

/// Codes q become q - 8, exactly: or-ed into the mantissa of a power of two, less its offset.
struct Half {
  static __device__ Weights decode(uint32_t word) {
    constexpr uint32_t kMagic = 0x64006400;  // 1024: the last place counts 1
    const __half2 offset = __float2half2_rn(-1032), offset16 = __float2half2_rn(-72),
                  sixteenth = __float2half2_rn(1 / 16.0f);
    const uint32_t high = word >> 8;
    return {{bits(__hadd2(half2(masked_or<0x000f000f>(word, kMagic)), offset)),
             bits(__hfma2(half2(masked_or<0x00f000f0>(word, kMagic)), sixteenth, offset16)),
             bits(__hadd2(half2(masked_or<0x000f000f>(high, kMagic)), offset)),
             bits(__hfma2(half2(masked_or<0x00f000f0>(high, kMagic)), sixteenth, offset16))}};
  }
  static __device__ float2 widen(uint32_t pair) { return __half22float2(half2(pair)); }
  static __device__ uint16_t narrow(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
  static __device__ __half2 half2(uint32_t pair) { return reinterpret_cast<const __half2&>(pair); }
  static __device__ uint32_t bits(__half2 pair) { return reinterpret_cast<const uint32_t&>(pair); }
};

struct Bfloat {
  static __device__ Weights decode(uint32_t word) {
    constexpr uint32_t kMagic = 0x43004300;  // 128: the last place counts 1
    const __nv_bfloat162 offset = __float2bfloat162_rn(-136);
    Weights w;
    for (int i = 0; i < 4; ++i) {
      const uint32_t code = masked_or<0x000f000f>(word >> (4 * i), kMagic);
      const __nv_bfloat162 pair = __hadd2(reinterpret_cast<const __nv_bfloat162&>(code), offset);
      w.a[i] = reinterpret_cast<const uint32_t&>(pair);
    }
    return w;
  }
  static __device__ float2 widen(uint32_t pair) {
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
  }
  static __device__ uint16_t narrow(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

/// acc += weights * x; b0, b1 are the lane's 4 values of operand B.
template <class T>
__device__ void mma(float (&acc)[4], const Weights& w, uint32_t b0, uint32_t b1);

template <>
__device__ inline void mma<Half>(float (&acc)[4], const Weights& w, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(w.a[0]), "r"(w.a[1]), "r"(w.a[2]), "r"(w.a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void mma<Bfloat>(float (&acc)[4], const Weights& w, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(w.a[0]), "r"(w.a[1]), "r"(w.a[2]), "r"(w.a[3]), "r"(b0), "r"(b1));
}

/// Weights, which no other load will want: past the first-level cache.
__device__ inline uint4 load_once(const uint8_t* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

}  // namespace moegate::qmoe
