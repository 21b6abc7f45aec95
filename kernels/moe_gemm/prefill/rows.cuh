// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 as prefill's output: each leaves shared memory by a bulk copy of up to 512 bytes,
// wherever it belongs, or is added there to what its token has.
#pragma once

#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

/// Sums of tokens may go down the rows first: what all rows add to in 256 columns stays in L2,
/// which all columns may be too large for.
template <fp8::Output kOutput, bool kDownTheRows = false>
struct Rows {
  static constexpr int kPitch = kColumns * 2 + 16;  // no bank conflicts in stmatrix
  static constexpr int kStagedBytes = kHalfTokens * kPitch;
  static constexpr int kStages = 3;  // what the staged output leaves room for
  static constexpr bool kGateWithUp = false, kRowsFirst = kDownTheRows;

  uint16_t* out;  // [R, N], or [T, N]

  __device__ void stage(const MoeGemmShape&, const Place&, const Sums& sums,
                        const float (&weights)[2], uint32_t staged) const {
    const int lane = threadIdx.x % 32;
    const uint32_t to = staged + (threadIdx.x / 32 % 4 * 16 + lane % 16) * kPitch + lane / 16 * 16;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
#pragma unroll
      for (int j = 0; j < kSums / 8; ++j) {
        const float* s = sums[p] + j * 8;
        fp8::store_matrices(to + (p * kProductColumns + j * 16) * 2,
                            pack_bf16(s[0] * weights[0], s[1] * weights[0]),
                            pack_bf16(s[2] * weights[1], s[3] * weights[1]),
                            pack_bf16(s[4] * weights[0], s[5] * weights[0]),
                            pack_bf16(s[6] * weights[1], s[7] * weights[1]));
      }
    }
  }

  __device__ void start(const MoeGemmShape& shape, const Place& place, int, const int (&ids)[2],
                        uint32_t staged) const {
    // Lanes start their copies one after the other: what they share need not be compared.
    const int bytes = uniform(min(kColumns, shape.n - place.column) * 2);
    const uint32_t from = staged + threadIdx.x % 32 * kPitch;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (ids[i] >= shape.rows()) continue;
      const int64_t row = kOutput == fp8::Output::rows ? ids[i] : ids[i] / shape.topk;
      start_burst(out + row * shape.n + place.column, from + i * 32 * kPitch, bytes);
    }
  }

 private:
  static __device__ void start_burst(uint16_t* to, uint32_t from, int bytes) {
    if constexpr (kOutput == fp8::Output::rows) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                   "r"(from), "r"(bytes)
                   : "memory");
    } else {
      asm volatile(
          "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], "
          "%2;" ::"l"(to),
          "r"(from), "r"(bytes)
          : "memory");
    }
  }
};

/// Of sums that all of K shares scale factors of.
struct RowsScaledOnce : Rows<fp8::Output::rows> {};
template <>
constexpr bool kScaledOnce<RowsScaledOnce> = true;

/// Of sums that the tensor cores add up.
struct WholeRows : RowsScaledOnce {};
template <>
constexpr bool kScaledOnce<WholeRows> = true;
template <>
constexpr bool kWhole<WholeRows> = true;

/// With a bias.
struct RowsBiased : RowsScaledOnce {
  const uint16_t* bias;  // [E, N] bf16
};
template <>
constexpr bool kScaledOnce<RowsBiased> = true;
template <>
constexpr bool kBiased<RowsBiased> = true;

/// Of int8.
struct Int8Rows : RowsScaledOnce {};
template <>
constexpr bool kScaledOnce<Int8Rows> = true;
template <>
constexpr bool kWhole<Int8Rows> = true;
template <>
constexpr bool kInt8<Int8Rows> = true;

struct Int8RowsBiased : RowsBiased {};
template <>
constexpr bool kScaledOnce<Int8RowsBiased> = true;
template <>
constexpr bool kBiased<Int8RowsBiased> = true;
template <>
constexpr bool kWhole<Int8RowsBiased> = true;
template <>
constexpr bool kInt8<Int8RowsBiased> = true;

}  // namespace moegate::moe_gemm::prefill
