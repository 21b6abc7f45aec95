// SPDX-License-Identifier: Apache-2.0
// Weights and activations as floats with AVX-512, sixteen a step. An e4m3 code shifted to the place
// of fp16's exponent and mantissa is its value times 2^-8, subnormals included. Included below a
// target pragma.
#pragma once

#include "kernels/host/vector_avx512.h"
#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {
namespace {

struct Avx512 : moegate::host::Avx512Vector {
  static constexpr int kAccumulators = 8;  // of a group of K, and as many of all of K
  static constexpr float kFp8Unit = 256;

  static Float fp8(const uint8_t* codes) {
    const __m256i wide =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m256i but_bit_14 = _mm256_set1_epi16(static_cast<short>(0xbfff));
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(wide, 7), but_bit_14));
  }
  using Whole = __m512i;
  static Float int8(const int8_t* codes) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))));
  }
  static Whole add_whole(Whole sums, Float whole) {
    return _mm512_add_epi32(sums, _mm512_cvtps_epi32(whole));
  }
  static Float bf16(const uint16_t* from) {
    const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
  }
};

}  // namespace

}  // namespace moegate::moe_gemm::host
