// SPDX-License-Identifier: Apache-2.0
// Eight floats with AVX2 and FMA, for inner loops written once for several instruction sets. In an
// unnamed namespace, because what is compiled for one instruction set must not be shared.
#pragma once

#include <immintrin.h>

namespace moegate::host {
namespace {

struct Avx2Vector {
  static constexpr int kWidth = 8;
  using Float = __m256;

  static Float load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Float v) { _mm256_storeu_ps(to, v); }
  static Float all(float x) { return _mm256_set1_ps(x); }
  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static float sum(Float v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  /// The sums of four vectors; each takes the same steps.
  static void sums(Float a, Float b, Float c, Float d, float* to) {
    const Float ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const Float cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const Float lanes =
        _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1)));
  }
};

}  // namespace
}  // namespace moegate::host
