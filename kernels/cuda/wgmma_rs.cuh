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

#define MOEGATE_SUMS_8(i)                                                               \
  "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3]), "+f"(acc[i + 4]), \
      "+f"(acc[i + 5]), "+f"(acc[i + 6]), "+f"(acc[i + 7])
#define MOEGATE_SUMS_32 MOEGATE_SUMS_8(0), MOEGATE_SUMS_8(8), MOEGATE_SUMS_8(16), MOEGATE_SUMS_8(24)
#define MOEGATE_NAMES_32                                                       \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20," \
  "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
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
MOEGATE_MULTIPLY_RS(8, "%0,%1,%2,%3", 4, 5, 6, 7, 8, 9, "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]),
                    "+f"(acc[3]))
MOEGATE_MULTIPLY_RS(16, "%0,%1,%2,%3,%4,%5,%6,%7", 8, 9, 10, 11, 12, 13, MOEGATE_SUMS_8(0))
MOEGATE_MULTIPLY_RS(32, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15", 16, 17, 18, 19, 20,
                    21, MOEGATE_SUMS_8(0), MOEGATE_SUMS_8(8))
MOEGATE_MULTIPLY_RS(64, MOEGATE_NAMES_32, 32, 33, 34, 35, 36, 37, MOEGATE_SUMS_32)
MOEGATE_MULTIPLY_RS(128,
                    MOEGATE_NAMES_32
                    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
                    ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63",
                    64, 65, 66, 67, 68, 69, MOEGATE_SUMS_32, MOEGATE_SUMS_8(32), MOEGATE_SUMS_8(40),
                    MOEGATE_SUMS_8(48), MOEGATE_SUMS_8(56))
#undef MOEGATE_MULTIPLY_RS
#undef MOEGATE_NAMES_32
#undef MOEGATE_SUMS_32
#undef MOEGATE_SUMS_8

}  // namespace moegate::cuda
