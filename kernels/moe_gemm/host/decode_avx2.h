// SPDX-License-Identifier: Apache-2.0
// Weights and activations as floats with AVX2, FMA and F16C, eight a step. An e4m3 code shifted to
// the place of fp16's exponent and mantissa is its value times 2^-8, subnormals included. Included
// below a target pragma.
#pragma once

#include "kernels/host/vector_avx2.h"
#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {
namespace {

struct Avx2 : moegate::host::Avx2Vector {
  static constexpr int kAccumulators = 4;  // of a group of K, and as many of all of K
  static constexpr float kFp8Unit = 256;

  static Float fp8(const uint8_t* codes) {
    const __m128i wide =
        _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
    const __m128i but_bit_14 = _mm_set1_epi16(static_cast<short>(0xbfff));
    return _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(wide, 7), but_bit_14));
  }
  using Whole = __m256i;
  static Float int8(const int8_t* codes) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes))));
  }
  static Whole add_whole(Whole sums, Float whole) {
    return _mm256_add_epi32(sums, _mm256_cvtps_epi32(whole));
  }
  static Float bf16(const uint16_t* from) {
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
  }
};

}  // namespace

}  // namespace moegate::moe_gemm::host
