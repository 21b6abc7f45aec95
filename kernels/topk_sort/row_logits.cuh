// SPDX-License-Identifier: Apache-2.0
// One token's logits in the registers of a warp: lane l holds experts l*N .. l*N+N-1, so that a
// lower lane always means a lower expert. Loading and decoding are apart, so that a warp can have
// the next row in flight while it works on this one.
#pragma once

#include <cstdint>

#include "kernels/cuda/block_scan.cuh"
#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {

using namespace cuda;

/// Undecoded: one fp32 value per word, or two 16-bit values per word (the lower expert low).
template <int N>
struct RawRow {
  uint32_t word[N];
};

/// Loads `Words` 32-bit words with the widest aligned vector loads.
template <int Words>
__device__ inline void load_words(const void* from, uint32_t* word) {
  static_assert(Words == 2 || Words % 4 == 0);
  if constexpr (Words == 2) {
    const uint2 v = __ldg(static_cast<const uint2*>(from));
    word[0] = v.x, word[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < Words; i += 4) {
      const uint4 v = __ldg(static_cast<const uint4*>(from) + i / 4);
      word[i] = v.x, word[i + 1] = v.y, word[i + 2] = v.z, word[i + 3] = v.w;
    }
  }
}

/// Row `token` of the logits. A lane whose experts all exist and start on a vector boundary loads
/// vectors; ragged rows (experts not a multiple of N) load one by one.
template <int N>
__device__ inline RawRow<N> load_row(const TopkSortArgs& args, int token, int lane) {
  RawRow<N> raw;
#pragma unroll
  for (int i = 0; i < N; ++i) raw.word[i] = 0;
  const int experts = args.shape.experts;
  const int first = lane * N;
  const int64_t element = int64_t{token} * experts + first;
  const bool wide = experts % N == 0;
  if (args.shape.dtype == DType::f32) {
    const uint32_t* row = static_cast<const uint32_t*>(args.logits) + element;
    if (wide) {
      if (first < experts) load_words<N>(row, raw.word);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (first + i < experts) raw.word[i] = __ldg(row + i);
    }
  } else {
    const uint16_t* row = static_cast<const uint16_t*>(args.logits) + element;
    if (wide) {
      if (first < experts) load_words<N / 2>(row, raw.word);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (first + i < experts) raw.word[i / 2] |= uint32_t{__ldg(row + i)} << (16 * (i % 2));
    }
  }
  return raw;
}

__device__ inline float decode16(uint16_t bits, DType dtype) {
  if (dtype == DType::bf16) return bf16_to_float(bits);
  float value;  // the hardware's conversion: f16_to_float of dtype.h is exact too, but slower
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// NaN counts as -infinity; -0 equals 0, so it must not sort below it.
__device__ inline float canonical(float logit) {
  return logit != logit ? -INFINITY : logit + 0.0f;
}

/// The lane's logits, canonical.
template <int N>
__device__ inline void decode_row(const RawRow<N>& raw, DType dtype, float (&logit)[N]) {
  if (dtype == DType::f32) {
#pragma unroll
    for (int i = 0; i < N; ++i) logit[i] = bits_float(raw.word[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      logit[i] = decode16(static_cast<uint16_t>(raw.word[i / 2] >> (16 * (i % 2))), dtype);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) logit[i] = canonical(logit[i]);
}

/// One logit straight from memory.
__device__ inline float load_logit(const TopkSortArgs& args, int token, int expert) {
  const int64_t element = int64_t{token} * args.shape.experts + expert;
  if (args.shape.dtype == DType::f32)
    return canonical(__ldg(static_cast<const float*>(args.logits) + element));
  return canonical(
      decode16(__ldg(static_cast<const uint16_t*>(args.logits) + element), args.shape.dtype));
}

}  // namespace moegate::topk_sort
