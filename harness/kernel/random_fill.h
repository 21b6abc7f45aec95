// SPDX-License-Identifier: Apache-2.0
// Random tensors too large to make on the host and copy: every element a pure function of seed,
// stream and index, with the same bits on host and device. Device::fill_random() applies them.
#pragma once

#include "harness/base/rng.h"
#include "harness/kernel/dtype.h"

namespace moegate {

/// What a tensor is filled with.
struct RandomFill {
  enum class Kind {
    /// Codes of a symmetric 4-bit quantisation of normal values, offset 8: binomial(15, 1/2), so
    /// mean 7.5 and standard deviation sqrt(15)/2 = 1.94. Four codes per unit, low nibble first.
    int4_normal,
    /// e4m3 codes of normal values (standard deviation 129, largest magnitude 448): the sum of four
    /// random bytes less its mean, times 7/8. Zero gives way to one of the sixteen zeros and
    /// subnormals, which a decoder must know too. Two codes per unit.
    e4m3_normal,
    /// Signed bytes of normal values (standard deviation 37, largest magnitude 127): a quarter of
    /// the same sum, towards zero. A sixteenth of the zeros gives way to 127 and -127, the ends of
    /// a quantised row. Two bytes per unit.
    int8_normal,
    /// Every bit at random, as the codes of fp4. Two bytes per unit.
    bits,
    /// Whole numbers from low to high, both included. Two bytes per unit.
    bytes,
    /// Uniform between low and high, in the element type, a floating one. One element per unit.
    uniform,
    /// The same in bf16 with every last bit set. Of such values x <= a no x * 448 / a lies halfway
    /// between normal e4m3 values, which would be 7 x = m a, all odd, 16 < m < 32 and 7 x < 1786.
    uniform_odd,
  };
  Kind kind;
  uint64_t seed, stream;
  DType dtype = DType::u8;  // of the elements
  float low = 0, high = 0;  // uniform, bytes
  uint64_t first = 0;       // which of an endless row of units the tensor begins with
};

/// Bytes that one unit writes.
constexpr size_t unit_bytes(const RandomFill& fill) {
  return fill.kind == RandomFill::Kind::uniform ? size_of(fill.dtype) : 2;
}

MOEGATE_HD inline int bit_count(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

MOEGATE_HD inline uint8_t e4m3_normal_code(uint32_t bits) {
  const uint32_t first = bits & 0xffu;
  const uint32_t sum = first + (bits >> 8 & 0xffu) + (bits >> 16 & 0xffu) + (bits >> 24);
  const int centred = static_cast<int>(sum) - 510;
  if (centred == 0) return static_cast<uint8_t>(first & 0x87u);
  return float_to_e4m3(static_cast<float>(centred) * 0.875f);
}

MOEGATE_HD inline uint8_t int8_normal_code(uint32_t bits) {
  const uint32_t first = bits & 0xffu;
  const uint32_t sum = first + (bits >> 8 & 0xffu) + (bits >> 16 & 0xffu) + (bits >> 24);
  const int code = (static_cast<int>(sum) - 510) / 4;
  if (code == 0 && first % 16 == 0) return first & 16u ? 0x7f : 0x81;
  return static_cast<uint8_t>(code);
}

/// Writes unit i of a tensor that starts at `to`, which is aligned to units and to its elements.
MOEGATE_HD inline void write_random_unit(const RandomFill& fill, void* to, uint64_t i) {
  const uint64_t bits = random_bits(fill.seed, fill.stream, fill.first + i);
  if (fill.kind == RandomFill::Kind::int4_normal) {
    uint32_t codes = 0;
    for (int n = 0; n < 4; ++n)
      codes |= static_cast<uint32_t>(bit_count((bits >> (16 * n)) & 0x7fff)) << (4 * n);
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(codes);
    return;
  }
  if (fill.kind == RandomFill::Kind::e4m3_normal) {
    const uint32_t low = e4m3_normal_code(static_cast<uint32_t>(bits));
    const uint32_t high = e4m3_normal_code(static_cast<uint32_t>(bits >> 32));
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(low | high << 8);
    return;
  }
  if (fill.kind == RandomFill::Kind::int8_normal) {
    const uint32_t low = int8_normal_code(static_cast<uint32_t>(bits));
    const uint32_t high = int8_normal_code(static_cast<uint32_t>(bits >> 32));
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(low | high << 8);
    return;
  }
  if (fill.kind == RandomFill::Kind::bits) {
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(bits >> 48);
    return;
  }
  if (fill.kind == RandomFill::Kind::bytes) {
    const auto count = static_cast<uint32_t>(fill.high - fill.low) + 1;
    const auto byte = [&](uint32_t random) {  // of 16 bits
      return static_cast<uint32_t>(fill.low) + (random * count >> 16);
    };
    const auto random = static_cast<uint32_t>(bits >> 32);
    static_cast<uint16_t*>(to)[i] =
        static_cast<uint16_t>(byte(random & 0xffffu) | byte(random >> 16) << 8);
    return;
  }
  const float unit = static_cast<float>(bits >> 40) * 0x1p-24f;
  const float value = fmaf(fill.high - fill.low, unit, fill.low);  // one rounding everywhere
  if (fill.kind == RandomFill::Kind::uniform_odd) {
    static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(float_to_bf16(value) | 1);
    return;
  }
  write_float(fill.dtype, to, static_cast<int64_t>(i), value);
}

}  // namespace moegate
