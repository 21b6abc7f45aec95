// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and exact conversions between them and float, the same on host and
// device. Only what operators need; no arithmetic on narrow types.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "harness/base/names.h"
#include "harness/base/rng.h"
#include "harness/values/tolerance.h"

namespace moegate {

/// e4m3 is the fp8 of products: 3 bits of mantissa, no infinity, 448 at most, NaN 0x7f and 0xff.
enum class DType { f32, f16, bf16, e4m3, i32, u8, i8 };
template <>
inline constexpr std::array kNames<DType> = {"fp32",  "fp16",  "bf16", "fp8",
                                             "int32", "uint8", "int8"};

/// Bytes of one element.
constexpr size_t size_of(DType t) {
  if (t == DType::f32 || t == DType::i32) return 4;
  return t == DType::u8 || t == DType::i8 || t == DType::e4m3 ? 1 : 2;
}

constexpr bool is_floating(DType t) {
  return t != DType::i32 && t != DType::u8 && t != DType::i8;
}

/// Of a floating type.
constexpr const FloatType& float_type(DType t) {
  return t == DType::f32 ? kFp32 : t == DType::f16 ? kFp16 : t == DType::bf16 ? kBf16 : kE4m3;
}

/// Of the floating types that need no scale factors, so not fp8. Throws Error(usage) naming them.
DType parse_float_dtype(const std::string& name);

MOEGATE_HD inline uint32_t float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}
MOEGATE_HD inline float bits_float(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

MOEGATE_HD inline float bf16_to_float(uint16_t h) {
  return bits_float(uint32_t{h} << 16);
}

/// Round to nearest even; NaN stays NaN.
MOEGATE_HD inline uint16_t float_to_bf16(float f) {
  const uint32_t u = float_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

MOEGATE_HD inline float f16_to_float(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 31) return bits_float(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return bits_float(sign | float_bits(magnitude));
  }
  return bits_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// Round to nearest even; overflow becomes infinity, NaN stays NaN.
MOEGATE_HD inline uint16_t float_to_f16(float f) {
  const uint32_t u = float_bits(f);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
    const float shifted = bits_float(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (float_bits(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

MOEGATE_HD inline float e4m3_to_float(uint8_t code) {
  const uint32_t sign = uint32_t{code & 0x80u} << 24;
  const uint32_t exponent = (code >> 3) & 0xfu;
  const uint32_t mantissa = code & 7u;
  if ((code & 0x7fu) == 0x7fu) return bits_float(sign | 0x7fc00000u);
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-9, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0.001953125f;
    return bits_float(sign | float_bits(magnitude));
  }
  return bits_float(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

/// Round to nearest even; beyond 448 and infinite becomes 448 of its sign, NaN becomes 0x7f: as the
/// GPU's saturating conversion.
MOEGATE_HD inline uint8_t float_to_e4m3(float f) {
  const uint32_t u = float_bits(f);
  const uint32_t sign = (u >> 24) & 0x80u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) {  // below 2^-6: adding 2^14 rounds to a multiple of 2^-9
    const float shifted = bits_float(magnitude) + 16384.0f;
    return static_cast<uint8_t>(sign | (float_bits(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

/// Element i of an array of a floating type, which is aligned to its elements.
MOEGATE_HD inline float read_float(DType t, const void* from, int64_t i) {
  if (t == DType::f32) return static_cast<const float*>(from)[i];
  if (t == DType::e4m3) return e4m3_to_float(static_cast<const uint8_t*>(from)[i]);
  const uint16_t narrow = static_cast<const uint16_t*>(from)[i];
  return t == DType::f16 ? f16_to_float(narrow) : bf16_to_float(narrow);
}

/// Rounds a value to element i of an array of a floating type, aligned likewise.
MOEGATE_HD inline void write_float(DType t, void* to, int64_t i, float value) {
  if (t == DType::f32) static_cast<float*>(to)[i] = value;
  if (t == DType::f16) static_cast<uint16_t*>(to)[i] = float_to_f16(value);
  if (t == DType::bf16) static_cast<uint16_t*>(to)[i] = float_to_bf16(value);
  if (t == DType::e4m3) static_cast<uint8_t*>(to)[i] = float_to_e4m3(value);
}

}  // namespace moegate
