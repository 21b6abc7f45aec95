// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and exact conversions between them and float, the same on host and
// device. Only what operators need; no arithmetic on narrow types.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#ifdef __CUDACC__
#define MOEGATE_HD __host__ __device__
#else
#define MOEGATE_HD
#endif

namespace moegate {

enum class DType { f32, f16, bf16, i32, u8 };

/// Bytes of one element.
constexpr size_t size_of(DType t) {
  return t == DType::f32 || t == DType::i32 ? 4 : t == DType::u8 ? 1 : 2;
}

constexpr bool is_floating(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16;
}

/// "fp32", "fp16", "bf16", "int32", "uint8".
const char* name_of(DType t);
/// Inverse of name_of for the floating types; throws Error(usage) naming the choices.
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

}  // namespace moegate
