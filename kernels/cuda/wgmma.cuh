// SPDX-License-Identifier: Apache-2.0
// Warpgroup products of fp8 and bf16 on Hopper's tensor cores (sm_90a): both operands in shared
// memory, K-major, in rows of 128 bytes with the 128-byte swizzle.
#pragma once

#include <cstdint>

#include "harness/kernel/dtype.h"
#include "kernels/cuda/wgmma_operands.cuh"

namespace moegate::cuda {

/// Whether this is compiled for a chip that has them; in device code only.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kHasWgmma = true;
#else
constexpr bool kHasWgmma = false;
#endif

/// Descriptor of an operand that starts at `address` (1024-byte aligned, plus a multiple of 32 for
/// a later slice of K): rows of 128 bytes, 8 rows of a swizzle pattern 1024 bytes apart. Its lower
/// half. The next 32 bytes of K are 2 further on.
__device__ inline uint32_t operand(uint32_t address) {
  return 1u << 16 | (address & 0x3ffff) >> 4;
}
/// The same in all lanes of a warp, and seen to be: products with operands derived from it need no
/// moves to uniform registers in between.
__device__ inline uint32_t uniform(uint32_t value) {
  return __shfl_sync(~0u, value, 0);
}
/// This thread's warpgroup in its block.
__device__ inline int warpgroup() {
  return uniform(threadIdx.x / 128);
}
/// An operand's upper half: 128-byte swizzle, patterns 1024 bytes apart, in units of 16.
constexpr uint32_t kOperandHigh = 1u << 30 | 1024 >> 4;

/// Registers belong to the products until wait_products().
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all products but the last `Pending` commits.
template <int Pending = 0>
__device__ inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Registers that each thread of a warpgroup has from here on; a block's sum stays what the launch
/// gave it.
template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// acc (+)= a[64, K] * b[Tokens, K]^T, where K is 32 bytes: 32 of e4m3, 16 of bf16; `add` false:
/// starts anew. Of warp w (of 4) and lane l a thread has rows 16 * w + l / 4 (elements 0, 1 of
/// every four) and 8 more (2, 3), columns 8 * j + 2 * (l % 4) and the next of element 4 * j.
template <int Tokens, DType kDtype = DType::e4m3>
__device__ void multiply(float (&acc)[Tokens / 2], uint32_t a, uint32_t b, bool add);

// Its operands in the order that asm counts them: the sums, then a, b, whether to add, and the half
// that all descriptors share, whose numbers the last four arguments are.
// bf16 could also come with K as the slower axis: "0, 0" says that neither operand does.
#define MOEGATE_MULTIPLY(tokens, ...)                    \
  MOEGATE_MULTIPLY_OF(e4m3, 32, "", tokens, __VA_ARGS__) \
  MOEGATE_MULTIPLY_OF(bf16, 16, ", 0, 0", tokens, __VA_ARGS__)
#define MOEGATE_MULTIPLY_OF(dtype, k, axes, tokens, sums, a_at, b_at, add_at, high_at)             \
  template <>                                                                                      \
  __device__ inline void multiply<tokens, DType::dtype>(float(&acc)[sums], uint32_t a, uint32_t b, \
                                                        bool add) {                                \
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %" #add_at                     \
                 ", 0;\nmov.b64 a, {%" #a_at ", %" #high_at "};\nmov.b64 b, {%" #b_at              \
                 ", %" #high_at "};\nwgmma.mma_async.sync.aligned.m64n" #tokens "k" #k             \
                 ".f32." #dtype "." #dtype " {" MOEGATE_NAMES_##sums "}, a, b, p, 1, 1" axes       \
                                                                     ";\n}\n"                      \
                 : MOEGATE_SUMS_##sums                                                             \
                 : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));                 \
  }
MOEGATE_MULTIPLY(16, 8, 8, 9, 10, 11)
MOEGATE_MULTIPLY(32, 16, 16, 17, 18, 19)
MOEGATE_MULTIPLY(64, 32, 32, 33, 34, 35)
MOEGATE_MULTIPLY(128, 64, 64, 65, 66, 67)
MOEGATE_MULTIPLY(192, 96, 96, 97, 98, 99)
MOEGATE_MULTIPLY(256, 128, 128, 129, 130, 131)
#undef MOEGATE_MULTIPLY_OF
#undef MOEGATE_MULTIPLY

/// acc (+)= a[64, K] * b[Tokens, K]^T, where K is the 128 bytes of a stage's rows (of e4m3 a group
/// of scale factors), under way until wait_products().
template <int Tokens, DType kDtype = DType::e4m3>
__device__ void start_group(float (&acc)[Tokens / 2], uint32_t a, uint32_t b, bool add = false) {
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<Tokens, kDtype>(acc, a + 2 * k, b + 2 * k, add || k > 0);
  commit_products();
}

/// Adds a group's products, whose columns are routed rows, to sums in fp32: times `row_scales`
/// [Tokens] (in shared memory) and the weights' scale factor.
template <int Tokens>
__device__ void add_scaled(float (&sums)[Tokens / 2], const float (&acc)[Tokens / 2],
                           const float* row_scales, float weight_scale) {
#pragma unroll
  for (int j = 0; j < Tokens / 8; ++j) {
    const float2 pair = *reinterpret_cast<const float2*>(row_scales + threadIdx.x % 4 * 2 + j * 8);
    const float first = pair.x * weight_scale, second = pair.y * weight_scale;
    sums[4 * j] += acc[4 * j] * first;
    sums[4 * j + 1] += acc[4 * j + 1] * second;
    sums[4 * j + 2] += acc[4 * j + 2] * first;
    sums[4 * j + 3] += acc[4 * j + 3] * second;
  }
}

}  // namespace moegate::cuda
