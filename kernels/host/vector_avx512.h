// SPDX-License-Identifier: Apache-2.0
// Sixteen floats with AVX-512, for inner loops written once for several instruction sets. In an
// unnamed namespace, because what is compiled for one instruction set must not be shared.
#pragma once

#include <immintrin.h>

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
};

}  // namespace
}  // namespace moegate::host
