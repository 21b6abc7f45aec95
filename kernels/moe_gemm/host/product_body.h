// SPDX-License-Identifier: Apache-2.0
// The inner loops of the host variants, written once for vectors V of an instruction set. Each
// product_<isa>.cc defines its V in an unnamed namespace and includes this file below a target
// pragma: whatever is instantiated here belongs to that file alone. For the same reason nothing of
// the standard library is used, whose instantiations files share.
#pragma once

#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {

/// e4m3 codes, decoded as multiples of V::kFp8Unit.
template <class V>
struct Fp8 {
  using Code = uint8_t;
  static constexpr bool kScaled = true;
  static constexpr float kUnit = 1;  // of a sum; add_scaled() has it
  static typename V::Float decode(const Code* codes) { return V::fp8(codes); }
};

/// Without scale factors, which follow the sum.
template <class V>
struct PlainFp8 : Fp8<V> {
  static constexpr bool kScaled = false;
  static constexpr float kUnit = V::kFp8Unit * V::kFp8Unit;
};

/// Sums over a group of K, at most 128 * 127^2, are exact in fp32; they are added up in int32.
template <class V>
struct Int8 {
  using Code = int8_t;
  static constexpr bool kScaled = false;
  static typename V::Float decode(const Code* codes) { return V::int8(codes); }
};

template <class V>
struct Bf16 {
  using Code = uint16_t;
  static constexpr bool kScaled = false;
  static constexpr float kUnit = 1;
  static typename V::Float decode(const Code* codes) { return V::bf16(codes); }
};

/// A vector of which only `count` elements are there; the others are zero.
template <class V, class E>
typename V::Float decode_tail(const typename E::Code* codes, int count) {
  typename E::Code padded[V::kWidth] = {};
  __builtin_memcpy(padded, codes, static_cast<size_t>(count) * sizeof *codes);
  return E::decode(padded);
}

template <class V, class E>
void widen_row(const void* from, int k, float* to) {
  const auto* codes = static_cast<const typename E::Code*>(from);
  int i = 0;
  for (; i + V::kWidth <= k; i += V::kWidth) V::store(to + i, E::decode(codes + i));
  if (i < k) V::store(to + i, decode_tail<V, E>(codes + i, k - i));
}

template <class V>
void widen(DType dtype, const void* from, int k, float* to) {
  if (dtype == DType::e4m3) return widen_row<V, Fp8<V>>(from, k, to);
  if (dtype == DType::i8) return widen_row<V, Int8<V>>(from, k, to);
  widen_row<V, Bf16<V>>(from, k, to);
}

/// The C x M corner of a panel: adds the dot products of one group of K, times its scale factors.
template <class V, Scaling S, int C, int M>
void add_scaled(const Panel& panel, int row, int column, int group,
                const typename V::Float (&products)[C][M], typename V::Float (&sums)[C][M]) {
  constexpr float kUnit = V::kFp8Unit * V::kFp8Unit;
  const int groups = panel.k / kMoeGroup;
  const auto scale_of = [&](int c) {
    return kUnit * panel.weight_scales[(panel.first_column + c) / kMoeGroup * groups + group];
  };
  if constexpr (S == Scaling::per_tile) {
    const float scale = scale_of(0);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const auto both = V::all(panel.x_scales[row + m][group] * scale);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sums[c][m] = V::fma(products[c][m], both, sums[c][m]);
    }
  } else {
    typename V::Float x_scales[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) x_scales[m] = V::all(panel.x_scales[row + m][group]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const auto scale = V::all(scale_of(column + c));
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        sums[c][m] = V::fma(products[c][m] * x_scales[m], scale, sums[c][m]);
      }
    }
  }
}

/// Adds to `into` what one group of K makes of C columns and M rows: every weight is decoded once
/// for M rows, every activation loaded once for C columns.
template <class V, class E, int C, int M>
__attribute__((always_inline)) inline void add_group(const Panel& panel, int row, int column,
                                                     int group, typename V::Float (&into)[C][M]) {
  using Code = typename E::Code;
  const int64_t pitch = panel.weight_pitch;
  const Code* weights = static_cast<const Code*>(panel.weights) + column * pitch;
  const int begin = group * kMoeGroup;
  const int end = begin + kMoeGroup < panel.k ? begin + kMoeGroup : panel.k;
  const auto add = [&](int c, typename V::Float weight, int i) {
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      into[c][m] = V::fma(weight, V::load(panel.x[row + m] + i), into[c][m]);
    }
  };
  int i = begin;
  for (; i + V::kWidth <= end; i += V::kWidth) {
    if (i * sizeof(Code) % 64 == 0) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) __builtin_prefetch(weights + (C + c) * pitch + i);
    }
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) add(c, E::decode(weights + c * pitch + i), i);
  }
  if (i < end) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      add(c, decode_tail<V, E>(weights + c * pitch + i, end - i), i);
    }
  }
}

/// Dot products of C columns and M rows.
template <class V, class E, Scaling S, int C, int M>
void multiply_tile(const Panel& panel, int row, int column, float* to) {
  using Float = typename V::Float;
  Float sums[C][M] = {};
  for (int group = panel.groups.first; group * kMoeGroup < panel.k; group += panel.groups.step) {
    Float products[C][M] = {};
    add_group<V, E, C, M>(panel, row, column, group, E::kScaled ? products : sums);
    if constexpr (E::kScaled) {
      add_scaled<V, S, C, M>(panel, row, column, group, products, sums);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) to[m * panel.columns + c] = E::kUnit * V::sum(sums[c][m]);
  }
}

/// The same of int8, rounded once, to fp32.
template <class V, int C, int M>
void multiply_whole(const Panel& panel, int row, int column, float* to) {
  typename V::Whole sums[C][M] = {};
  for (int group = panel.groups.first; group * kMoeGroup < panel.k; group += panel.groups.step) {
    typename V::Float products[C][M] = {};
    add_group<V, Int8<V>, C, M>(panel, row, column, group, products);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) sums[c][m] = V::add_whole(sums[c][m], products[c][m]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      int32_t lanes[V::kWidth], sum = 0;
      __builtin_memcpy(lanes, &sums[c][m], sizeof lanes);
      for (const int32_t lane : lanes) sum += lane;
      to[m * panel.columns + c] = static_cast<float>(sum);
    }
  }
}

template <class V, class E, Scaling S, int C, int M>
void multiply_corner(const Panel& panel, int row, int column, float* to) {
  if constexpr (__is_same(typename E::Code, int8_t)) {
    multiply_whole<V, C, M>(panel, row, column, to);
  } else {
    multiply_tile<V, E, S, C, M>(panel, row, column, to);
  }
}

/// M rows. Wide tiles read the weights in long stretches; no more accumulators than registers hold.
template <class V, class E, Scaling S, int M>
void multiply_rows(const Panel& panel, int row, float* sums) {
  constexpr int kFit = V::kAccumulators / (M == 3 ? 4 : M);
  constexpr int kColumns = kFit < 1 ? 1 : kFit;
  int c = 0;
  for (; c + kColumns <= panel.columns; c += kColumns) {
    multiply_corner<V, E, S, kColumns, M>(panel, row, c, sums + c);
  }
  for (; c < panel.columns; ++c) multiply_corner<V, E, S, 1, M>(panel, row, c, sums + c);
}

template <class V, class E, Scaling S>
void multiply_panel(const Panel& panel, float* sums) {
  int row = 0;
  for (; row + 4 <= panel.rows; row += 4) {
    multiply_rows<V, E, S, 4>(panel, row, sums + row * panel.columns);
  }
  float* to = sums + row * panel.columns;
  if (panel.rows - row == 3) multiply_rows<V, E, S, 3>(panel, row, to);
  if (panel.rows - row == 2) multiply_rows<V, E, S, 2>(panel, row, to);
  if (panel.rows - row == 1) multiply_rows<V, E, S, 1>(panel, row, to);
}

template <class V>
void multiply(const Panel& panel, Scaling scaling, float* sums) {
  if (panel.dtype == DType::bf16) {
    multiply_panel<V, Bf16<V>, Scaling::per_tile>(panel, sums);
  } else if (panel.dtype == DType::i8) {
    multiply_panel<V, Int8<V>, Scaling::per_tile>(panel, sums);
  } else if (!panel.weight_scales) {
    multiply_panel<V, PlainFp8<V>, Scaling::per_tile>(panel, sums);
  } else if (scaling == Scaling::per_tile) {
    multiply_panel<V, Fp8<V>, Scaling::per_tile>(panel, sums);
  } else {
    multiply_panel<V, Fp8<V>, Scaling::per_column>(panel, sums);
  }
}

}  // namespace moegate::moe_gemm::host
