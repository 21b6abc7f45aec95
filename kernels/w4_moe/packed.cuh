// SPDX-License-Identifier: Apache-2.0
// MXFP4 weights as the CUDA variants read them: in the order of the fragments of mma.m16n8k16. So a
// warp reads one stream of whole lines, and a lane decodes what it reads.
//
// A panel is 16 rows of weights: for gate_up the gates of 8 columns of the output and, 8 rows
// behind, their ups, so that SwiGLU needs no exchange between lanes. A unit is a panel's 64 of K:
// 16 bytes of codes for each lane, a word for each 16 of K, then the 32 scales, a word for each
// four lanes. Behind all units is a word that says whether any scale is large.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/barrier.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe {

constexpr int kPanelRows = 16, kUnitK = 64;
constexpr int kUnitCodes = 512, kUnitBytes = kUnitCodes + 32;

/// An even number: some warps take two.
MOEGATE_HD inline int panels_of(const W4Shape& shape) {
  return (shape.n + 2 * kPanelRows - 1) / (2 * kPanelRows) * 2;
}
MOEGATE_HD inline int units_of(const W4Shape& shape) {
  return (shape.k + kUnitK - 1) / kUnitK;
}

/// The row of an expert's weights at row `i` of a panel; N or more: none.
MOEGATE_HD inline int weight_row(const W4Shape& shape, int panel, int i) {
  return panel * kPanelRows + (shape.down ? i : 2 * (i % 8) + i / 8);
}

/// Why no kernel with a grid row for each block of rows takes a case; empty: they do.
inline std::string too_many_blocks(const W4Shape& shape) {
  constexpr int64_t kMost = 65535;  // of a grid's y
  if (shape.capacity() <= kMost * shape.block) return {};
  return fmt::format("takes up to {} blocks of rows", kMost);
}

/// Bytes of all units.
inline int64_t units_bytes(const W4Shape& shape) {
  return int64_t{shape.experts} * panels_of(shape) * units_of(shape) * kUnitBytes;
}

/// Weights as kernels get them.
struct PackedWeights {
  const uint8_t* units;
  const uint32_t* is_wide;  // [1]: 1: a scale is 2^2 or more
};

/// Packs all weights, for prepare().
void pack_weights(W4Moe& problem, const Launch& where);
PackedWeights packed_weights(W4Moe& problem);

/// A variant that reads packed weights, of either operator. kUnsupported: of a W4Shape and
/// DeviceFacts.
template <class P, auto kUnsupported>
KernelSpec<P> packed_spec(const char* name, const char* help, void (*launch)(P&, const Launch&)) {
  return {.name = name,
          .backend = Backend::cuda,
          .help = help,
          .launch = launch,
          .prepare = [](P& problem, const Launch& where) { pack_weights(problem, where); },
          .unsupported = [](const Case& c, const DeviceFacts& d) -> std::string {
            const W4Shape shape = P::shape_of(c);
            if (shape.weights == W4Weights::int4) return "has no decoder of int4 weights";
            return kUnsupported(shape, d);
          }};
}

/// What a lane has of a unit.
struct Unit {
  uint4 codes;
  uint32_t scales;  // of rows g and g + 8 in the first 32 of K, then in the last
};

/// Scales are kept as byte + 126, the exponent of a bf16 that is 2^(byte - 1).
constexpr uint32_t kScaleOffset = 126;

/// The factors of rows g and g + 8 in a half of a unit, each twice in a word. With `kWide`: 2^(byte
/// - 127), else 2^(byte - 1), which bf16 has up to byte 128.
template <bool kWide>
__device__ void scales_of(uint32_t scales, int half, uint32_t (&pairs)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t kept = __byte_perm(scales, 0, 0x4040u + 0x0101u * (2 * half + i));
    if constexpr (kWide) {
      const uint32_t byte = (kept - kScaleOffset) & 0xffu;
      const uint32_t bits = byte == 0 ? 0x0040u : byte == 255 ? 0x7fffu : byte << 7;
      pairs[i] = bits * 0x00010001u;
    } else {
      pairs[i] = kept << 7;
    }
  }
}

__device__ inline uint32_t multiply_pair(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000));
  return product;
}

/// Operand a of m16n8k16 of a word of codes: rows g and g + 8 at the lower k, then at the upper.
/// pack_weights() laid the bits so that three pairs take one shift and one mask each: as the
/// exponent's lowest two bits and the fraction's highest they are value * 2^-126 (0.5 is
/// subnormal), which is exact. One factor makes the weight of it; two where one would overflow.
template <bool kWide>
__device__ void decode(uint32_t word, const uint32_t (&scales)[2], uint32_t (&pairs)[4]) {
  constexpr uint32_t kSign = 0x80008000, kCode = 0x81c081c0, k2To126 = 0x7e807e80;
  pairs[0] = word & kCode;
  pairs[1] = (word << 3) & kCode;
  pairs[2] = (word << 6) & kCode;
  pairs[3] = ((word << 1) & kSign) | ((word >> 5) & 0x01000100) | ((word >> 4) & 0x00c000c0);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kWide) pairs[i] = multiply_pair(pairs[i], k2To126);
    pairs[i] = multiply_pair(pairs[i], scales[i % 2]);
  }
}

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8, and
/// gets of each the elements l % 4 * 2 and the next of row l / 4.
__device__ inline void load_matrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// sums += a[16, 16] * b[8, 16]^T. Lane 4g + t holds of rows g (sums 0, 1) and g + 8 (2, 3) the
/// columns 2t and 2t + 1.
__device__ inline void multiply(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace moegate::w4_moe
