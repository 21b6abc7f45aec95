// SPDX-License-Identifier: Apache-2.0
// The inner loops of the host variants, written once for vectors V of an instruction set. Each
// product_<isa>.cc defines its V in an unnamed namespace and includes this file below a target
// pragma: whatever is instantiated here belongs to that file alone. For the same reason nothing of
// the standard library is used, whose instantiations files share.
//
// A weight is exact in fp32, so scales are applied while decoding. The sum of an output takes the
// same steps in whatever tile it is.
#pragma once

#include "kernels/w4_moe/host/panel_body.h"

namespace moegate::w4_moe::host {

/// Bytes of codes that share a scale at least.
constexpr int kUnit = 16;

template <class V>
void widen_row(const uint16_t* from, int k, float* to) {
  for (int i = 0; i < k / 2; i += V::kWidth) {
    const auto wide = V::widen_pairs(from + 2 * i);
    V::store(to + i, wide.even);
    V::store(to + k / 2 + i, wide.odd);
  }
}

namespace {

/// 2^(byte - 127) for every byte; 0 is subnormal, 255 NaN.
struct E8m0Table {
  float values[256];
  constexpr E8m0Table() : values() {
    for (uint32_t byte = 1; byte < 255; ++byte) {
      values[byte] = __builtin_bit_cast(float, byte << 23);
    }
    values[0] = 0x1p-127f;
    values[255] = __builtin_nanf("");
  }
};

/// The scales of a column, by type of the weights.
template <W4Weights kWeights>
struct Scales;
template <>
struct Scales<W4Weights::mxfp4> {
  using Stored = uint8_t;
  static float value(uint8_t byte) {
    static constexpr E8m0Table table;
    return table.values[byte];
  }
};
template <>
struct Scales<W4Weights::int4> {
  using Stored = uint16_t;
  static float value(uint16_t bits) { return __builtin_bit_cast(float, uint32_t{bits} << 16); }
};

}  // namespace

/// Tiles on vectors of floats.
template <class V>
struct OnFloats {
  static constexpr int kColumnsOfFewRows = V::kColumnsOfFewRows, kColumns = V::kColumns;

  /// Dot products of C columns and M rows: every byte of codes is decoded once for M rows, every
  /// activation loaded once for C columns.
  template <W4Weights kWeights, int C, int M>
  static void tile(const W4Shape& shape, const Panel& panel, int row, int column, float* sums) {
    using Float = typename V::Float;
    using Scale = Scales<kWeights>;
    const int bytes = shape.k / 2, groups = shape.groups();
    const int units = kWeights == W4Weights::mxfp4 ? 1 : shape.group / 2 / kUnit;
    const uint8_t* codes = panel.codes + int64_t{column} * bytes;
    const auto* scales =
        static_cast<const typename Scale::Stored*>(panel.scales) + int64_t{column} * groups;
    const float* const* rows = panel.x + row;
    Float sum[C][M] = {};
    int i = 0;
    for (int group = 0; group < groups; ++group) {
      typename V::template Decoder<kWeights> decoder[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) decoder[c].scale_by(Scale::value(scales[c * groups + group]));
      for (int unit = 0; unit < units; ++unit) {
        if (i % 64 == 0) {
#pragma GCC unroll 8
          for (int c = 0; c < C; ++c) __builtin_prefetch(codes + int64_t{C + c} * bytes + i);
        }
#pragma GCC unroll 4
        for (int end = i + kUnit; i < end; i += V::kWidth) {
          Float even[M], odd[M];
#pragma GCC unroll 8
          for (int m = 0; m < M; ++m) {
            even[m] = V::load(rows[m] + i);
            odd[m] = V::load(rows[m] + bytes + i);
          }
#pragma GCC unroll 8
          for (int c = 0; c < C; ++c) {
            const auto weight = decoder[c].decode(codes + int64_t{c} * bytes + i);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
              sum[c][m] = V::fma(weight.even, even[m], sum[c][m]);
              sum[c][m] = V::fma(weight.odd, odd[m], sum[c][m]);
            }
          }
        }
      }
    }
    write_sums<V>(sum, panel.columns, sums);
  }
};

}  // namespace moegate::w4_moe::host
