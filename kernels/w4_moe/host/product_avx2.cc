// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX2 and FMA: eight bytes of codes a step. An e2m1 code is
// the permutation of eight magnitudes, and a sign.
#include "kernels/w4_moe/host/product.h"

#ifdef MOEGATE_HOST_X86
#include <immintrin.h>
MOEGATE_TARGET_BEGIN("avx2,fma,f16c")
#include "kernels/host/vector_avx2.h"
#include "kernels/w4_moe/host/product_body.h"

namespace moegate::w4_moe::host {
namespace {

struct Avx2 : moegate::host::Avx2Vector {
  static constexpr int kColumnsOfFewRows = 4, kColumns = 2;
  struct Pair {
    Float even, odd;
  };

  static Pair widen_pairs(const uint16_t* from) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i but_low = _mm256_set1_epi32(static_cast<int>(0xffff0000));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(pairs, but_low))};
  }

  template <W4Weights kWeights>
  struct Decoder {
    Float scaled;  // of int4 the scale, else what magnitudes 0, 1, ... 7 mean

    void scale_by(float scale) {
      scaled = all(scale);
      if (kWeights == W4Weights::int4) return;
      scaled = _mm256_mul_ps(_mm256_setr_ps(0, .5f, 1, 1.5f, 2, 3, 4, 6), scaled);
    }
    Pair decode(const uint8_t* codes) const {
      const __m256i q =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
      const __m256i high = _mm256_srli_epi32(q, 4);
      if (kWeights == W4Weights::int4) {
        return {scaled_int(_mm256_and_si256(q, _mm256_set1_epi32(15))), scaled_int(high)};
      }
      return {signed_magnitude(q), signed_magnitude(high)};
    }

   private:
    Float scaled_int(__m256i q) const {
      return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8))), scaled);
    }
    /// Of the four lowest bits.
    Float signed_magnitude(__m256i q) const {
      const Float sign = _mm256_and_ps(_mm256_castsi256_ps(_mm256_slli_epi32(q, 28)), all(-0.f));
      return _mm256_xor_ps(_mm256_permutevar8x32_ps(scaled, q), sign);
    }
  };
};

}  // namespace

const Isa kAvx2 = {"avx2", moegate::host::has_avx2, widen_row<Avx2>, multiply<OnFloats<Avx2>>,
                   finish<Avx2>};

}  // namespace moegate::w4_moe::host
MOEGATE_TARGET_END
#else
namespace moegate::w4_moe::host {
const Isa kAvx2 = {.name = "avx2", .present = moegate::host::has_avx2};
}
#endif
