// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX-512: sixteen bytes of codes a step, decoded by two
// permutations of a table that holds the sixteen weights of a scale.
#include "kernels/w4_moe/host/product.h"

#ifdef MOEGATE_HOST_X86
#include "kernels/host/intrinsics.h"
MOEGATE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,fma,f16c")
#include "kernels/host/vector_avx512.h"
#include "kernels/w4_moe/host/product_body.h"

namespace moegate::w4_moe::host {
namespace {

struct Avx512 : moegate::host::Avx512Vector {
  static constexpr int kColumnsOfFewRows = 8, kColumns = 4;
  static Pair widen_pairs(const uint16_t* from) {
    const __m512i pairs = _mm512_loadu_si512(from);
    const __m512i but_low = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(pairs, but_low))};
  }

  template <W4Weights kWeights>
  struct Decoder {
    Float weights;  // of code 0, 1, ... 15

    void scale_by(float scale) {
      const Float codes =
          kWeights == W4Weights::int4
              ? _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7)
              : _mm512_setr_ps(0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6);
      weights = _mm512_mul_ps(codes, all(scale));
    }
    Pair decode(const uint8_t* codes) const { return look_up(codes, weights); }
  };
};

}  // namespace

const Isa kAvx512 = {"avx512", moegate::host::has_avx512, widen_row<Avx512>,
                     multiply<OnFloats<Avx512>>, finish<Avx512>};

}  // namespace moegate::w4_moe::host
MOEGATE_TARGET_END
#else
namespace moegate::w4_moe::host {
const Isa kAvx512 = {.name = "avx512", .present = moegate::host::has_avx512};
}
#endif
