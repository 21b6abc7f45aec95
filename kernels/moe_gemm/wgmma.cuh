// SPDX-License-Identifier: Apache-2.0
// Warpgroup products of fp8 on Hopper's tensor cores (sm_90a): both operands in shared memory,
// K-major, in rows of 128 bytes with the 128-byte swizzle.
#pragma once

#include <cstdint>

namespace moegate::gemm {

/// Descriptor of an operand that starts at `address` (1024-byte aligned, plus a multiple of 32 for
/// a later slice of K): rows of 128 bytes, 8 rows of a swizzle pattern 1024 bytes apart. Its lower
/// half. The next 32 bytes of K are 2 further on.
__device__ inline uint32_t operand(uint32_t address) {
  return 1u << 16 | (address & 0x3ffff) >> 4;
}
/// Its upper half: 128-byte swizzle, patterns 1024 bytes apart, in units of 16.
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

/// acc (+)= a[64, 32] * b[Tokens, 32]^T of e4m3; `add` false: starts anew. Of warp w (of 4) and
/// lane l a thread has rows 16 * w + l / 4 (elements 0, 1 of every four) and 8 more (2, 3), columns
/// 8 * j + 2 * (l % 4) and the next of element 4 * j.
template <int Tokens>
__device__ void multiply(float (&acc)[Tokens / 2], uint32_t a, uint32_t b, bool add);

template <>
__device__ inline void multiply<16>(float (&acc)[8], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %10, 0;\n"
      "mov.b64 a, {%8, %11};\nmov.b64 b, {%9, %11};\n"
      "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7"
      "}, a, b, p, 1, 1;\n}\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
        "+f"(acc[6]), "+f"(acc[7])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));
}

template <>
__device__ inline void multiply<32>(float (&acc)[16], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %18, 0;\n"
      "mov.b64 a, {%16, %19};\nmov.b64 b, {%17, %19};\n"
      "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
      "}, a, b, p, 1, 1;\n}\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
        "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
        "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));
}

template <>
__device__ inline void multiply<64>(float (&acc)[32], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\n"
      "mov.b64 a, {%32, %35};\nmov.b64 b, {%33, %35};\n"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
      "}, a, b, p, 1, 1;\n}\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
        "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
        "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]),
        "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]),
        "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]),
        "+f"(acc[30]), "+f"(acc[31])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));
}

template <>
__device__ inline void multiply<128>(float (&acc)[64], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %66, 0;\n"
      "mov.b64 a, {%64, %67};\nmov.b64 b, {%65, %67};\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,"
      "%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63"
      "}, a, b, p, 1, 1;\n}\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
        "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
        "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]),
        "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]),
        "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]),
        "+f"(acc[30]), "+f"(acc[31]), "+f"(acc[32]), "+f"(acc[33]), "+f"(acc[34]), "+f"(acc[35]),
        "+f"(acc[36]), "+f"(acc[37]), "+f"(acc[38]), "+f"(acc[39]), "+f"(acc[40]), "+f"(acc[41]),
        "+f"(acc[42]), "+f"(acc[43]), "+f"(acc[44]), "+f"(acc[45]), "+f"(acc[46]), "+f"(acc[47]),
        "+f"(acc[48]), "+f"(acc[49]), "+f"(acc[50]), "+f"(acc[51]), "+f"(acc[52]), "+f"(acc[53]),
        "+f"(acc[54]), "+f"(acc[55]), "+f"(acc[56]), "+f"(acc[57]), "+f"(acc[58]), "+f"(acc[59]),
        "+f"(acc[60]), "+f"(acc[61]), "+f"(acc[62]), "+f"(acc[63])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));
}

template <>
__device__ inline void multiply<192>(float (&acc)[96], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %98, 0;\n"
      "mov.b64 a, {%96, %99};\nmov.b64 b, {%97, %99};\n"
      "wgmma.mma_async.sync.aligned.m64n192k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,"
      "%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,"
      "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,"
      "%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,"
      "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
      "}, a, b, p, 1, 1;\n}\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
        "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
        "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]),
        "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]),
        "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]),
        "+f"(acc[30]), "+f"(acc[31]), "+f"(acc[32]), "+f"(acc[33]), "+f"(acc[34]), "+f"(acc[35]),
        "+f"(acc[36]), "+f"(acc[37]), "+f"(acc[38]), "+f"(acc[39]), "+f"(acc[40]), "+f"(acc[41]),
        "+f"(acc[42]), "+f"(acc[43]), "+f"(acc[44]), "+f"(acc[45]), "+f"(acc[46]), "+f"(acc[47]),
        "+f"(acc[48]), "+f"(acc[49]), "+f"(acc[50]), "+f"(acc[51]), "+f"(acc[52]), "+f"(acc[53]),
        "+f"(acc[54]), "+f"(acc[55]), "+f"(acc[56]), "+f"(acc[57]), "+f"(acc[58]), "+f"(acc[59]),
        "+f"(acc[60]), "+f"(acc[61]), "+f"(acc[62]), "+f"(acc[63]), "+f"(acc[64]), "+f"(acc[65]),
        "+f"(acc[66]), "+f"(acc[67]), "+f"(acc[68]), "+f"(acc[69]), "+f"(acc[70]), "+f"(acc[71]),
        "+f"(acc[72]), "+f"(acc[73]), "+f"(acc[74]), "+f"(acc[75]), "+f"(acc[76]), "+f"(acc[77]),
        "+f"(acc[78]), "+f"(acc[79]), "+f"(acc[80]), "+f"(acc[81]), "+f"(acc[82]), "+f"(acc[83]),
        "+f"(acc[84]), "+f"(acc[85]), "+f"(acc[86]), "+f"(acc[87]), "+f"(acc[88]), "+f"(acc[89]),
        "+f"(acc[90]), "+f"(acc[91]), "+f"(acc[92]), "+f"(acc[93]), "+f"(acc[94]), "+f"(acc[95])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(kOperandHigh));
}

/// acc = a[64, 128] * b[Tokens, 128]^T, under way until wait_products(): a stage, a group of scale
/// factors.
template <int Tokens>
__device__ void start_group(float (&acc)[Tokens / 2], uint32_t a, uint32_t b) {
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<Tokens>(acc, a + 2 * k, b + 2 * k, k > 0);
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

}  // namespace moegate::gemm
