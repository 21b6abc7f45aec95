// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX-512: sixteen bytes of codes a step, decoded by two
// permutations of a table that holds the sixteen weights of a scale factor.
#include "kernels/qmoe/host/dot.h"

#ifdef MOEGATE_HOST_X86
#include "kernels/host/intrinsics.h"
MOEGATE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,fma,f16c")
#include "kernels/host/vector_avx512.h"
#include "kernels/qmoe/host/dot_body.h"

namespace moegate::qmoe::host {
namespace {

struct Avx512 : moegate::host::Avx512Vector {
  static constexpr int kAccumulators = 16;
  /// One value to all lanes.
  static Float widen(DType dtype, const uint16_t* from) {
    if (dtype == DType::f16) return _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(*from)));
    return _mm512_castsi512_ps(_mm512_set1_epi32(*from << 16));
  }

  static Pair widen_pairs(DType dtype, const uint16_t* from) {
    const __m512i pairs = _mm512_loadu_si512(from);
    const __m512i high = _mm512_srli_epi32(pairs, 16);
    if (dtype == DType::f16) {
      return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs)),
              _mm512_cvtph_ps(_mm512_cvtepi32_epi16(high))};
    }
    return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
            _mm512_castsi512_ps(_mm512_slli_epi32(high, 16))};
  }

  struct Decoder {
    Float weights;  // of code 0, 1, ... 15

    void scale_by(Float scale) {
      const Float offsets = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
      weights = _mm512_mul_ps(offsets, scale);
    }
    Pair decode(const uint8_t* codes) const { return look_up(codes, weights); }
  };
};

}  // namespace

const Isa kAvx512 = {"avx512", moegate::host::has_avx512, widen_row<Avx512>, multiply<Avx512>};

}  // namespace moegate::qmoe::host
MOEGATE_TARGET_END
#else
namespace moegate::qmoe::host {
const Isa kAvx512 = {.name = "avx512", .present = moegate::host::has_avx512};
}
#endif
