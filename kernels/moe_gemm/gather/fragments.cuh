// SPDX-License-Identifier: Apache-2.0
// Slices of K in shared memory, as operands of mma.sync: rows of kSliceBytes of e4m3, bf16 or int8,
// the products of a warp's rows and columns. No row is a routed one here.
//
// e4m3 is widened to fp16, which is exact, and multiplied as such: mma.sync of e4m3 exists in PTX
// for sm_90, but there it is emulated by this very conversion (NVIDIA/cutlass issue 1986), for
// every product anew; here a warp converts a fragment once for all products that use it.
#pragma once

#include <cstdint>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::gather {

constexpr int kPieceBytes = 16;
constexpr int kPieces = kSliceBytes / kPieceBytes;

/// Where a piece of a row lies: pieces of a row are swapped among themselves, so that the same
/// piece of eight rows lies in different banks.
__device__ inline uint32_t piece_at(int row, int piece) {
  return row * kSliceBytes + (piece ^ row % 8) * kPieceBytes;
}

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8, and
/// gets of each the elements l % 4 * 2 and the next of row l / 4.
__device__ inline void load_matrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// Two e4m3, each in the upper byte of a half, to fp16, for chips that do not convert (before
/// sm_89). One place to the right a code is the fp16 of its value / 256, subnormal or not: both
/// formats are sign, exponent, fraction, and their biases are 8 apart. 0x7f is NaN.
__device__ inline uint32_t widen_two(uint32_t codes) {
  const uint32_t value = codes & 0x7f007f00;
  const uint32_t nan = value + 0x01000100;  // its sign is set for 0x7f alone
  const uint32_t scaled = (codes & 0x80008000) | value >> 1 | (nan & 0x80008000) >> 1;
  uint32_t wide;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(wide) : "r"(scaled), "r"(0x5c005c00));  // * 256
  return wide;
}

/// Four e4m3 to fp16: the first two and the last two.
__device__ inline void widen(uint32_t codes, uint32_t& first, uint32_t& last) {
#if __CUDA_ARCH__ >= 890
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n"
      "}\n"
      : "=r"(first), "=r"(last)
      : "r"(codes));
#else
  first = widen_two(__byte_perm(codes, 0, 0x1404));
  last = widen_two(__byte_perm(codes, 0, 0x3424));
#endif
}

/// sums += a[16, 16] * b[8, 16]^T. Lane l holds of rows l / 4 (elements 0, 1) and l / 4 + 8 (2, 3)
/// the columns l % 4 * 2 and the next.
template <DType kDtype>
__device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kDtype == DType::bf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// The same of int8, 32 of K, in int32.
template <DType kDtype>
__device__ void multiply(int (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(kDtype == DType::i8);
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Products that 32 bytes of K make. Of four neighbouring e4m3, the first two stand where a product
/// has elements 2q and 2q + 1 of its K, the last two where it has 2q + 8 and 2q + 9: another order
/// of K than in memory, but the same in both operands.
template <DType kDtype>
constexpr int kProducts = kDtype == DType::e4m3 ? 2 : 1;

/// Operand a: 16 rows from `row` on, 32 bytes from `piece` on.
template <DType kDtype>
__device__ void load_rows(uint32_t base, int row, int piece, uint32_t (&a)[kProducts<kDtype>][4]) {
  const int lane = threadIdx.x % 32;
  uint32_t raw[4];  // rows 0-7, 8-15 of the first piece, then of the second
  load_matrices(base + piece_at(row + lane % 16, piece + lane / 16), raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kProducts<kDtype> == 1) {
      a[0][i] = raw[i];
    } else {
      widen(raw[i], a[i / 2][i % 2], a[i / 2][i % 2 + 2]);
    }
  }
}

/// Operand b twice: 16 columns from `column` on, 32 bytes from `piece` on.
template <DType kDtype>
__device__ void load_columns(uint32_t base, int column, int piece,
                             uint32_t (&b)[2][kProducts<kDtype>][2]) {
  const int lane = threadIdx.x % 32;
  uint32_t raw[4];  // both pieces of columns 0-7, then of 8-15
  load_matrices(base + piece_at(column + lane / 16 * 8 + lane % 8, piece + lane / 8 % 2), raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kProducts<kDtype> == 1) {
      b[i / 2][0][i % 2] = raw[i];
    } else {
      widen(raw[i], b[i / 2][i % 2][0], b[i / 2][i % 2][1]);
    }
  }
}

/// sums += a slice of 16 * RowParts rows from `row` of `x` on, times one of 8 * ColumnParts columns
/// from `column` of `weights` on.
template <DType kDtype, int RowParts, int ColumnParts, class Sum>
__device__ void multiply_slice(uint32_t x, int row, uint32_t weights, int column,
                               Sum (&sums)[RowParts][ColumnParts][4]) {
  // All at once where registers allow it.
  constexpr int kUnrolled = RowParts * ColumnParts < 16 ? 4 : 2;
#pragma unroll kUnrolled
  for (int piece = 0; piece < kPieces; piece += 2) {
    uint32_t a[RowParts][kProducts<kDtype>][4];
#pragma unroll
    for (int r = 0; r < RowParts; ++r) load_rows<kDtype>(x, row + r * 16, piece, a[r]);
#pragma unroll
    for (int c = 0; c < ColumnParts; c += 2) {
      uint32_t b[2][kProducts<kDtype>][2];
      load_columns<kDtype>(weights, column + c * 8, piece, b);
#pragma unroll
      for (int p = 0; p < kProducts<kDtype>; ++p) {
#pragma unroll
        for (int r = 0; r < RowParts; ++r) {
          multiply<kDtype>(sums[r][c], a[r][p], b[0][p]);
          multiply<kDtype>(sums[r][c + 1], a[r][p], b[1][p]);
        }
      }
    }
  }
}

}  // namespace moegate::moe_gemm::gather
