// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX2, FMA and F16C: eight bytes of codes a step.
#include "kernels/qmoe/host/dot.h"

#ifdef MOEGATE_HOST_X86
#include <immintrin.h>
MOEGATE_TARGET_BEGIN("avx2,fma,f16c")
#include "kernels/host/vector_avx2.h"
#include "kernels/qmoe/host/dot_body.h"

namespace moegate::qmoe::host {
namespace {

struct Avx2 : moegate::host::Avx2Vector {
  static constexpr int kAccumulators = 8;
  struct Pair {
    Float even, odd;
  };

  /// One value to all lanes.
  static Float widen(DType dtype, const uint16_t* from) {
    if (dtype == DType::f16) return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(*from)));
    return _mm256_castsi256_ps(_mm256_set1_epi32(*from << 16));
  }

  static Pair widen_pairs(DType dtype, const uint16_t* from) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i even = _mm256_blend_epi16(pairs, _mm256_setzero_si256(), 0xaa);
    const __m256i odd = _mm256_srli_epi32(pairs, 16);
    if (dtype == DType::f16) return {_mm256_cvtph_ps(packed(even)), _mm256_cvtph_ps(packed(odd))};
    return {_mm256_castsi256_ps(_mm256_slli_epi32(even, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(odd, 16))};
  }

  struct Decoder {
    Float scale, offset;

    void scale_by(Float by) {
      scale = by;
      offset = _mm256_mul_ps(by, _mm256_set1_ps(-8));
    }
    Float weights(__m256i q) const { return fma(_mm256_cvtepi32_ps(q), scale, offset); }
    Pair decode(const uint8_t* codes) const {
      const __m256i q =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
      return {weights(_mm256_and_si256(q, _mm256_set1_epi32(15))),
              weights(_mm256_srli_epi32(q, 4))};
    }
  };

 private:
  static __m128i packed(__m256i v) {
    return _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  }
};

}  // namespace

const Isa kAvx2 = {"avx2", moegate::host::has_avx2, widen_row<Avx2>, multiply<Avx2>};

}  // namespace moegate::qmoe::host
MOEGATE_TARGET_END
#else
namespace moegate::qmoe::host {
const Isa kAvx2 = {.name = "avx2", .present = moegate::host::has_avx2};
}
#endif
