// SPDX-License-Identifier: Apache-2.0
// Products of a warp by mma.sync, from bf16 in registers to sums in fp32 (sm_80), and how matrices
// come from shared memory and go there (stores: sm_90).
#pragma once

#include <cstdint>

namespace moegate::cuda {

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8, and
/// gets of each the elements l % 4 * 2 and the next of row l / 4.
__device__ inline void load_matrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// Four 8x8 matrices of 16-bit elements, each turned; lane l has the address of row l % 8 of matrix
/// l / 8.
__device__ inline void store_turned(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// The same, as they are.
__device__ inline void store_matrices(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// 16 bytes, of which `address` is a multiple.
__device__ inline uint4 load_shared(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
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

}  // namespace moegate::cuda
