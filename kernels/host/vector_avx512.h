// SPDX-License-Identifier: Apache-2.0
// Sixteen floats with AVX-512, for inner loops written once for several instruction sets. In an
// unnamed namespace, because what is compiled for one instruction set must not be shared.
#pragma once

#include <cstdint>

#include "kernels/host/intrinsics.h"

namespace moegate::host {
namespace {

struct Avx512Vector {
  static constexpr int kWidth = 16;
  using Float = __m512;

  static Float load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Float v) { _mm512_storeu_ps(to, v); }
  static Float all(float x) { return _mm512_set1_ps(x); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static float sum(Float v) { return _mm512_reduce_add_ps(v); }
  struct Pair {
    Float even, odd;
  };
  /// What codes of four bits mean by a table: those in the low halves of 16 bytes, and in the high.
  static Pair look_up(const uint8_t* codes, Float table) {
    // A permutation takes no notice of the bits above the lowest four.
    const __m512i q =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    return {_mm512_permutexvar_ps(q, table), _mm512_permutexvar_ps(_mm512_srli_epi32(q, 4), table)};
  }
  /// The sums of four vectors; each takes the same steps.
  static void sums(Float a, Float b, Float c, Float d, float* to) {
    const Float ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const Float cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const Float lanes =
        _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(lanes),
                      _mm512_castps512_ps256(_mm512_shuffle_f32x4(lanes, lanes, 0xee)));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
  }
};

}  // namespace
}  // namespace moegate::host
