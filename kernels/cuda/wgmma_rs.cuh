// SPDX-License-Identifier: Apache-2.0
// Warpgroup products of bf16 on Hopper's tensor cores (sm_90a) whose operand a is in registers:
// what a warp decoded, as for m16n8k16, 16 rows for each warp.
#pragma once

#include "kernels/cuda/wgmma.cuh"

namespace moegate::cuda {

/// acc += a[64, 16] * b[Tokens, 16]^T. `b` as operand() has it. Registers of `a` and `acc`
/// belong to the product until it was waited for.
template <int Tokens>
__device__ void multiply_rs(float (&acc)[Tokens / 2], const uint32_t (&a)[4], uint32_t b);

#define MOEGATE_MULTIPLY_RS(tokens, names, a0, a1, a2, a3, b_at, high_at, ...)               \
  template <>                                                                                \
  __device__ inline void multiply_rs<tokens>(float(&acc)[tokens / 2], const uint32_t(&a)[4], \
                                             uint32_t b) {                                   \
    asm volatile("{\n.reg .b64 b;\nmov.b64 b, {%" #b_at ", %" #high_at                       \
                 "};\nwgmma.mma_async.sync.aligned.m64n" #tokens "k16.f32.bf16.bf16 {" names \
                 "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, b, 1, 1, 1, 0;\n}\n"          \
                 : __VA_ARGS__                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(kOperandHigh));   \
  }
MOEGATE_MULTIPLY_RS(8, MOEGATE_NAMES_4, 4, 5, 6, 7, 8, 9, MOEGATE_SUMS_4)
MOEGATE_MULTIPLY_RS(16, MOEGATE_NAMES_8, 8, 9, 10, 11, 12, 13, MOEGATE_SUMS_8)
MOEGATE_MULTIPLY_RS(24, MOEGATE_NAMES_12, 12, 13, 14, 15, 16, 17, MOEGATE_SUMS_12)
MOEGATE_MULTIPLY_RS(32, MOEGATE_NAMES_16, 16, 17, 18, 19, 20, 21, MOEGATE_SUMS_16)
MOEGATE_MULTIPLY_RS(40, MOEGATE_NAMES_20, 20, 21, 22, 23, 24, 25, MOEGATE_SUMS_20)
MOEGATE_MULTIPLY_RS(48, MOEGATE_NAMES_24, 24, 25, 26, 27, 28, 29, MOEGATE_SUMS_24)
MOEGATE_MULTIPLY_RS(56, MOEGATE_NAMES_28, 28, 29, 30, 31, 32, 33, MOEGATE_SUMS_28)
MOEGATE_MULTIPLY_RS(64, MOEGATE_NAMES_32, 32, 33, 34, 35, 36, 37, MOEGATE_SUMS_32)
MOEGATE_MULTIPLY_RS(72, MOEGATE_NAMES_36, 36, 37, 38, 39, 40, 41, MOEGATE_SUMS_36)
MOEGATE_MULTIPLY_RS(80, MOEGATE_NAMES_40, 40, 41, 42, 43, 44, 45, MOEGATE_SUMS_40)
MOEGATE_MULTIPLY_RS(88, MOEGATE_NAMES_44, 44, 45, 46, 47, 48, 49, MOEGATE_SUMS_44)
MOEGATE_MULTIPLY_RS(96, MOEGATE_NAMES_48, 48, 49, 50, 51, 52, 53, MOEGATE_SUMS_48)
MOEGATE_MULTIPLY_RS(104, MOEGATE_NAMES_52, 52, 53, 54, 55, 56, 57, MOEGATE_SUMS_52)
MOEGATE_MULTIPLY_RS(112, MOEGATE_NAMES_56, 56, 57, 58, 59, 60, 61, MOEGATE_SUMS_56)
MOEGATE_MULTIPLY_RS(120, MOEGATE_NAMES_60, 60, 61, 62, 63, 64, 65, MOEGATE_SUMS_60)
MOEGATE_MULTIPLY_RS(128, MOEGATE_NAMES_64, 64, 65, 66, 67, 68, 69, MOEGATE_SUMS_64)
#undef MOEGATE_MULTIPLY_RS

}  // namespace moegate::cuda
