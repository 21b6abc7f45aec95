// SPDX-License-Identifier: Apache-2.0
// The formats of weights as kernels know them, each a type: how much of a unit (packed.cuh) its
// scales take, and how a word of eight codes becomes operand a of mma.m16n8k16 in bf16.
//
// An instruction works on a pair: the elements k and k + 1 of a row, in the halves of a register.
// Pairs 0 and 1 of a word are of rows g and g + 8 at the lower k, 2 and 3 at the upper.
#pragma once

#include <cstdint>

#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe {

__device__ inline uint32_t multiply_add_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

__device__ inline uint32_t multiply_pair(uint32_t a, uint32_t b) {
  return multiply_add_pair(a, b, 0x80008000);
}

/// a & b | c as one instruction. Of two constants the compiler would make two.
__device__ inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

constexpr int kUnitCodes = 512;  // bytes, ahead of a unit's scales

/// A half of a register twice. Not a byte permutation: this one costs nothing, because the product
/// that takes it chooses the half.
__device__ inline uint32_t low_twice(uint32_t pair) {
  uint32_t twice;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {low, low};\n}\n"
      : "=r"(twice)
      : "r"(pair));
  return twice;
}
__device__ inline uint32_t high_twice(uint32_t pair) {
  uint32_t twice;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\nmov.b32 %0, {high, high};\n}\n"
      : "=r"(twice)
      : "r"(pair));
  return twice;
}

/// 13 instructions for a word, seven of them logic, which has half of the rate. Scales are exact,
/// so that weights are.
struct Mxfp4 {
  using Scales = uint32_t;  // of rows g and g + 8 in the first 32 of K, then in the last
  static constexpr int kUnitBytes = kUnitCodes + 8 * static_cast<int>(sizeof(Scales));
  static constexpr uint32_t kZero = 0;  // its code
  static constexpr bool kMayBeWide = true, kScalesSums = false, kMayLackBias = false;

  /// Scales are kept as byte + 126, the exponent of a bf16 that is 2^(byte - 1).
  static constexpr uint32_t kScaleOffset = 126;

  /// The factors of rows g and g + 8 in a half of a unit, each twice in a word. With `kWide`:
  /// 2^(byte - 127), else 2^(byte - 1), which bf16 has up to byte 128.
  template <bool kWide>
  __device__ static void scales_of(Scales scales, int half, uint32_t (&pairs)[2]) {
    // As bf16, in the halves of a register: of the first 32 of K, and of the last.
    const uint32_t rows[2] = {(scales << 7) & 0x7f807f80, (scales >> 1) & 0x7f807f80};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kWide) {
        const uint32_t kept = __byte_perm(scales, 0, 0x4440u + 2 * half + i);
        const uint32_t byte = (kept - kScaleOffset) & 0xffu;
        const uint32_t bits = byte == 0 ? 0x0040u : byte == 255 ? 0x7fffu : byte << 7;
        pairs[i] = bits * 0x00010001u;
      } else {
        pairs[i] = half == 0 ? low_twice(rows[i]) : high_twice(rows[i]);
      }
    }
  }

  /// pack_weights() laid the bits so that three pairs take one shift and one mask each: as the
  /// exponent's lowest two bits and the fraction's highest they are value * 2^-126 (0.5 is
  /// subnormal), which is exact. No four of such masks fit into 16 bits: the last pair takes two of
  /// each. One factor makes the weight of it; two where one would overflow.
  template <bool kWide>
  __device__ static void decode(uint32_t word, const uint32_t (&scales)[2], uint32_t (&pairs)[4]) {
    constexpr uint32_t kCode = 0x81c081c0, kRest = 0x80c080c0, kBit = 0x01000100;
    constexpr uint32_t k2To126 = 0x7e807e80;
    pairs[0] = word & kCode;
    pairs[1] = (word << 4) & kCode;
    pairs[2] = __funnelshift_l(word, word, 10) & kCode;
    pairs[3] = ((word << 6) & kRest) | ((word >> 2) & kBit);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kWide) pairs[i] = multiply_pair(pairs[i], k2To126);
      pairs[i] = multiply_pair(pairs[i], scales[i % 2]);
    }
  }
};

template <int kScales>
struct Int4Scales;
template <>
struct Int4Scales<1> {
  using Type = uint32_t;
};
template <>
struct Int4Scales<2> {
  using Type = uint2;
};

/// 11 instructions for a word of unscaled weights, which are exact, or 15 for one of scaled ones,
/// which are rounded. kScales: of a row in a unit of 64 of K, 2 for groups of 32, else 1.
template <int kScales>
struct Int4 {
  using Scales = typename Int4Scales<kScales>::Type;  // words: bf16 of rows g and g + 8
  static constexpr int kUnitBytes = kUnitCodes + 8 * static_cast<int>(sizeof(Scales));
  static constexpr int kGroups = kScales;  // or parts of one, in a unit
  static constexpr uint32_t kZero = 8;
  static constexpr bool kMayBeWide = false, kScalesSums = true, kMayLackBias = true;

  __device__ static uint32_t word_of(Scales scales, int half) {
    if constexpr (kScales == 1) {
      return scales;
    } else {
      return half == 0 ? scales.x : scales.y;
    }
  }
  template <bool>
  __device__ static void scales_of(Scales scales, int half, uint32_t (&pairs)[2]) {
    const uint32_t both = word_of(scales, half);
    pairs[0] = low_twice(both);
    pairs[1] = high_twice(both);
  }

  /// q - 8. As the lowest bits of a bf16 that is 128, whose last bit is 1, a code is 128 + q.
  __device__ static void decode_unscaled(uint32_t word, uint32_t (&pairs)[4]) {
    constexpr uint32_t k128 = 0x43004300, k1 = 0x3f803f80, kMinus136 = 0xc308c308;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = multiply_add_pair(and_or(word >> (4 * i), 0x000f000f, k128), k1, kMinus136);
    }
  }
  template <bool>
  __device__ static void decode(uint32_t word, const uint32_t (&scales)[2], uint32_t (&pairs)[4]) {
    decode_unscaled(word, pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = multiply_pair(pairs[i], scales[i % 2]);
  }
};

/// Calls f.operator()<W>() with the format of a case, and returns what it returns. Host code.
template <class F>
auto with_format(const W4Shape& shape, const F& f) {
  if (shape.weights == W4Weights::mxfp4) return f.template operator()<Mxfp4>();
  return shape.group == 32 ? f.template operator()<Int4<2>>() : f.template operator()<Int4<1>>();
}

}  // namespace moegate::w4_moe
