// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX-512: sixteen weights a step. An e4m3 code shifted to the
// place of fp16's exponent and mantissa is its value times 2^-8, subnormals included.
#include "kernels/moe_gemm/host/product.h"

#ifdef MOEGATE_HOST_X86
// GCC 12 warns of its own intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC target("avx512f,avx512bw,avx512vl,fma,f16c")
#include "kernels/host/vector_avx512.h"
#include "kernels/moe_gemm/host/product_body.h"

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
  static Float bf16(const uint16_t* from) {
    const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
  }
};

}  // namespace

const Isa kAvx512 = {"avx512",
                     [] {
                       return __builtin_cpu_supports("avx512f") != 0 &&
                              __builtin_cpu_supports("avx512bw") != 0 &&
                              __builtin_cpu_supports("avx512vl") != 0;
                     },
                     widen<Avx512>, multiply<Avx512>};

}  // namespace moegate::moe_gemm::host
#endif
