// SPDX-License-Identifier: Apache-2.0
// Random tensors too large to make on the host and copy: every element a pure function of seed,
// stream and index, with the same bits on host and device. Device::fill_random() applies them.
#pragma once

#include "harness/dtype.h"
#include "harness/rng.h"

namespace moegate {

/// What a tensor is filled with.
struct RandomFill {
  enum class Kind {
    /// Codes of a symmetric 4-bit quantisation of normal values, offset 8: binomial(15, 1/2), so
    /// mean 7.5 and standard deviation sqrt(15)/2 = 1.94. Four codes per unit, low nibble first.
    int4_normal,
    /// Uniform between low and high, in the element type. One element per unit.
    uniform,
  };
  Kind kind;
  uint64_t seed, stream;
  DType dtype = DType::u8;  // of the elements
  float low = 0, high = 0;  // uniform
};

/// Bytes that one unit writes.
constexpr size_t unit_bytes(const RandomFill& fill) {
  return fill.kind == RandomFill::Kind::int4_normal ? 2 : size_of(fill.dtype);
}

MOEGATE_HD inline int bit_count(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

/// Writes unit i of a tensor that starts at `to`, which is aligned to its elements (int4: to 2).
MOEGATE_HD inline void write_random_unit(const RandomFill& fill, void* to, uint64_t i) {
  const uint64_t bits = random_bits(fill.seed, fill.stream, i);
  if (fill.kind == RandomFill::Kind::int4_normal) {
    uint32_t codes = 0;
    for (int n = 0; n < 4; ++n)
      codes |= static_cast<uint32_t>(bit_count((bits >> (16 * n)) & 0x7fff)) << (4 * n);
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(codes);
    return;
  }
  const float unit = static_cast<float>(bits >> 40) * 0x1p-24f;
  const float value = fmaf(fill.high - fill.low, unit, fill.low);  // one rounding everywhere
  if (fill.dtype == DType::f32) static_cast<float*>(to)[i] = value;
  if (fill.dtype == DType::f16) static_cast<uint16_t*>(to)[i] = float_to_f16(value);
  if (fill.dtype == DType::bf16) static_cast<uint16_t*>(to)[i] = float_to_bf16(value);
}

}  // namespace moegate
