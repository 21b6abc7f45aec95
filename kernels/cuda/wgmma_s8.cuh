// SPDX-License-Identifier: Apache-2.0
// Warpgroup products of int8 on Hopper's tensor cores (sm_90a), exact in int32: operands, sums and
// their places as those of e4m3 in wgmma.cuh.
#pragma once

#include "kernels/cuda/wgmma.cuh"

namespace moegate::cuda {

/// acc (+)= a[64, 32] * b[Tokens, 32]^T; `add` false: starts anew.
template <int Tokens>
__device__ void multiply(int (&acc)[Tokens / 2], uint32_t a, uint32_t b, bool add);

#define MOEGATE_4_WHOLE(i) "+r"(acc[i]), "+r"(acc[i + 1]), "+r"(acc[i + 2]), "+r"(acc[i + 3])
#define MOEGATE_WHOLE_8(i) MOEGATE_4_WHOLE(i), MOEGATE_4_WHOLE(i + 4)
#define MOEGATE_WHOLE_16(i) MOEGATE_WHOLE_8(i), MOEGATE_WHOLE_8(i + 8)
#define MOEGATE_WHOLE_32(i) MOEGATE_WHOLE_16(i), MOEGATE_WHOLE_16(i + 16)
#define MOEGATE_WHOLE_64(i) MOEGATE_WHOLE_32(i), MOEGATE_WHOLE_32(i + 32)
// As MOEGATE_MULTIPLY_OF in wgmma.cuh; integers have neither signs nor axes to choose.
#define MOEGATE_MULTIPLY_WHOLE(tokens, sums, a_at, b_at, add_at, high_at)                      \
  template <>                                                                                  \
  __device__ inline void multiply<tokens>(int(&acc)[sums], uint32_t a, uint32_t b, bool add) { \
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %" #add_at                 \
                 ", 0;\nmov.b64 a, {%" #a_at ", %" #high_at "};\nmov.b64 b, {%" #b_at          \
                 ", %" #high_at "};\nwgmma.mma_async.sync.aligned.m64n" #tokens                \
                 "k32.s32.s8.s8 {" MOEGATE_NAMES_##sums "}, a, b, p;\n}\n"                     \
                 : MOEGATE_WHOLE_##sums(0)                                                     \
                 : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));             \
  }
MOEGATE_MULTIPLY_WHOLE(16, 8, 8, 9, 10, 11)
MOEGATE_MULTIPLY_WHOLE(32, 16, 16, 17, 18, 19)
MOEGATE_MULTIPLY_WHOLE(64, 32, 32, 33, 34, 35)
MOEGATE_MULTIPLY_WHOLE(128, 64, 64, 65, 66, 67)
#undef MOEGATE_MULTIPLY_WHOLE

/// As start_group() of floating types: the 128 bytes of a stage's rows.
template <int Tokens>
__device__ void start_group(int (&acc)[Tokens / 2], uint32_t a, uint32_t b, bool add) {
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<Tokens>(acc, a + 2 * k, b + 2 * k, add || k > 0);
  commit_products();
}

}  // namespace moegate::cuda
