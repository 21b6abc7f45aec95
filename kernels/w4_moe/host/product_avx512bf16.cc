// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX-512 and its products of bf16: two a lane, twice as many
// as of floats. 64 bytes of codes a step, of which a permutation of words looks up one nibble of
// four; x lies in that order. Codes are exact in bf16. Their sum over the 8 of a lane, which share
// a scale, is scaled in fp32. Subnormals of x count as zero.
#include "kernels/w4_moe/host/product.h"

#ifdef MOEGATE_HOST_X86
#include "kernels/host/intrinsics.h"
MOEGATE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512bf16,fma,f16c")
#include "kernels/host/vector_avx512.h"
#include "kernels/w4_moe/host/panel_body.h"

namespace moegate::w4_moe::host {
namespace {

constexpr int kStep = 128;  // elements of K
constexpr int kNibbles = 4;

/// The words of `from` that a mask of `count` has; the others are zero.
__m512i load_words(const uint16_t* from, int count) {
  const __mmask32 mask = count >= 32 ? ~0u : count <= 0 ? 0 : (1u << count) - 1;
  return _mm512_maskz_loadu_epi16(mask, from);
}

/// Words n, n + 4, n + 8, ... of every 128 for nibble n of a word of codes.
void reorder(const uint16_t* from, int k, float* to) {
  alignas(64) uint16_t every_fourth[32];
  for (int i = 0; i < 32; ++i) every_fourth[i] = static_cast<uint16_t>(kNibbles * i % 64);
  const __m512i first = _mm512_load_si512(every_fourth);
  for (int at = 0; at < k; at += kStep, to += kStep / 2) {
    __m512i x[4];
    for (int i = 0; i < 4; ++i) x[i] = load_words(from + at + 32 * i, k - at - 32 * i);
    for (int n = 0; n < kNibbles; ++n) {
      const __m512i which = _mm512_add_epi16(first, _mm512_set1_epi16(static_cast<short>(n)));
      const __m512i low = _mm512_permutex2var_epi16(x[0], which, x[1]);
      const __m512i high = _mm512_permutex2var_epi16(x[2], which, x[3]);
      _mm512_storeu_si512(to + 16 * n, _mm512_mask_blend_epi16(0xffff0000, low, high));
    }
  }
}

/// Scales of a step as floats, four lanes for every 32 elements of K.
template <W4Weights kWeights>
struct StepScales {
  static constexpr bool kInt4 = kWeights == W4Weights::int4;
  static constexpr int kBytes = kInt4 ? 2 : 1;
  const uint8_t* stored;
  int groups;     // of a column
  int per_step;   // 4 or less
  __m512i which;  // of a step's scales, for each lane

  StepScales(const W4Shape& shape, const Panel& panel, int column)
      : stored(static_cast<const uint8_t*>(panel.scales)),
        groups(shape.groups()),
        per_step(kStep / shape.group) {
    stored += int64_t{column} * groups * kBytes;
    which = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    for (int group = 32; group < shape.group; group *= 2) which = _mm512_srli_epi32(which, 1);
  }

  __m512 at(int c, int step) const {
    const int first = step * per_step, left = groups - first;
    const auto mask = static_cast<__mmask8>((1 << (left < per_step ? left : per_step)) - 1);
    const uint8_t* from = stored + (int64_t{c} * groups + first) * kBytes;
    const __m128i scales = kInt4 ? of_bf16(_mm_maskz_loadu_epi16(mask, from))
                                 : of_e8m0(_mm_maskz_loadu_epi8(mask, from));
    return _mm512_permutexvar_ps(which, _mm512_castsi512_ps(_mm512_castsi128_si512(scales)));
  }

 private:
  static __m128i of_bf16(__m128i words) { return _mm_slli_epi32(_mm_cvtepu16_epi32(words), 16); }
  /// 2^(byte - 127); 0 is subnormal, 255 NaN.
  static __m128i of_e8m0(__m128i bytes) {
    const __m128i half = _mm_set1_epi32(0x00400000), inf = _mm_set1_epi32(0x7f800000);
    const __m128i scales = _mm_max_epu32(_mm_slli_epi32(_mm_cvtepu8_epi32(bytes), 23), half);
    return _mm_mask_or_epi32(scales, _mm_cmpeq_epi32_mask(scales, inf), scales, half);
  }
};

/// What 16 codes mean in bf16, twice: a permutation looks at five bits.
template <W4Weights kWeights>
__m512i values() {
  static constexpr uint16_t kE2m1[] = {0,      0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
                                       0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0,
                                       0xc000, 0xc040, 0xc080, 0xc0c0};
  static constexpr uint16_t kInt4[] = {0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040,
                                       0xc000, 0xbf80, 0,      0x3f80, 0x4000, 0x4040,
                                       0x4080, 0x40a0, 0x40c0, 0x40e0};
  const void* of = kWeights == W4Weights::int4 ? kInt4 : kE2m1;
  return _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(of)));
}

struct Avx512Bf16 {
  static constexpr int kColumnsOfFewRows = 8, kColumns = 4;
  using V = moegate::host::Avx512Vector;

  template <W4Weights kWeights, int C, int M>
  static void tile(const W4Shape& shape, const Panel& panel, int row, int column, float* sums) {
    const int bytes = shape.k / 2;
    const uint8_t* codes = panel.codes + int64_t{column} * bytes;
    const StepScales<kWeights> scales(shape, panel, column);
    const __m512i table = values<kWeights>();
    const float* const* rows = panel.x + row;
    __m512 sum[C][M] = {};
    for (int i = 0, step = 0; i < bytes; i += kStep / 2, ++step) {
      const __mmask64 mask = bytes - i >= 64 ? ~0ull : (1ull << (bytes - i)) - 1;
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const uint8_t* from = codes + int64_t{c} * bytes + i;
        __builtin_prefetch(from + int64_t{C} * bytes);
        const __m512i q = _mm512_maskz_loadu_epi8(mask, from);
        const __m512i weights[kNibbles] = {
            _mm512_permutexvar_epi16(q, table),
            _mm512_permutexvar_epi16(_mm512_srli_epi16(q, 4), table),
            _mm512_permutexvar_epi16(_mm512_srli_epi16(q, 8), table),
            _mm512_permutexvar_epi16(_mm512_srli_epi16(q, 12), table)};
        const __m512 scale = scales.at(c, step);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          __m512 product = _mm512_setzero_ps();
#pragma GCC unroll 4
          for (int n = 0; n < kNibbles; ++n) {
            const __m512i x = _mm512_loadu_si512(rows[m] + i + 16 * n);
            product = _mm512_dpbf16_ps(product, (__m512bh)weights[n], (__m512bh)x);
          }
          sum[c][m] = _mm512_fmadd_ps(product, scale, sum[c][m]);
        }
      }
    }
    write_sums<V>(sum, panel.columns, sums);
  }
};

}  // namespace

const Isa kAvx512Bf16 = {"avx512bf16", moegate::host::has_avx512_bf16, reorder,
                         multiply<Avx512Bf16>, finish<Avx512Bf16>};

}  // namespace moegate::w4_moe::host
MOEGATE_TARGET_END
#else
namespace moegate::w4_moe::host {
const Isa kAvx512Bf16 = {.name = "avx512bf16", .present = moegate::host::has_avx512_bf16};
}
#endif
