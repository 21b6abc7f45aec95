// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Checks one narrow format against its definition, for every one of its 65536 bit patterns.
struct Format16 {
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
  int mantissa_bits;
  int bias;

  int exponent_of(uint16_t h) const { return (h & 0x7fff) >> mantissa_bits; }
  int mantissa_of(uint16_t h) const { return h & ((1 << mantissa_bits) - 1); }
  int top_exponent() const { return (1 << (15 - mantissa_bits)) - 1; }
  bool is_nan(uint16_t h) const { return exponent_of(h) == top_exponent() && mantissa_of(h) != 0; }
  uint16_t infinity() const { return static_cast<uint16_t>(top_exponent() << mantissa_bits); }

  /// The value by the format's definition, in double.
  double value(uint16_t h) const {
    const double sign = h & 0x8000 ? -1 : 1;
    const int e = exponent_of(h);
    if (e == top_exponent()) return sign * std::numeric_limits<double>::infinity();
    const double fraction = std::ldexp(mantissa_of(h), -mantissa_bits);
    return sign * (e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias));
  }
};

constexpr Format16 kF16{f16_to_float, float_to_f16, 10, 15};
constexpr Format16 kBf16{bf16_to_float, float_to_bf16, 7, 127};

class Narrow : public testing::TestWithParam<Format16> {};

TEST_P(Narrow, EveryPatternWidensToItsValueAndBack) {
  const Format16 f = GetParam();
  for (uint32_t u = 0; u < 65536; ++u) {
    const auto h = static_cast<uint16_t>(u);
    if (f.is_nan(h)) {
      EXPECT_TRUE(std::isnan(f.widen(h))) << u;
      EXPECT_TRUE(f.is_nan(f.narrow(f.widen(h)))) << u;
      continue;
    }
    ASSERT_EQ(static_cast<double>(f.widen(h)), f.value(h)) << u;
    ASSERT_EQ(std::signbit(f.widen(h)), (h & 0x8000) != 0) << u;
    ASSERT_EQ(f.narrow(f.widen(h)), h) << u;
  }
}

TEST_P(Narrow, RoundsToNearestAndTiesToEven) {
  const Format16 f = GetParam();
  for (uint16_t h = 0; h + 1 < f.infinity(); ++h) {
    const auto next = static_cast<uint16_t>(h + 1);
    const double middle = (f.value(h) + f.value(next)) / 2;
    const auto tie = static_cast<float>(middle);
    if (static_cast<double>(tie) != middle) continue;  // below float's smallest subnormal
    const uint16_t even = h % 2 == 0 ? h : next;
    ASSERT_EQ(f.narrow(tie), even) << h;
    ASSERT_EQ(f.narrow(-tie), even | 0x8000) << h;
    ASSERT_EQ(f.narrow(std::nextafter(tie, 0.0f)), h) << h;
    ASSERT_EQ(f.narrow(std::nextafter(tie, kInf)), next) << h;
  }
}

TEST_P(Narrow, OverflowsToInfinityFromHalfAStepAboveTheLargest) {
  const Format16 f = GetParam();
  const auto largest = static_cast<uint16_t>(f.infinity() - 1);
  const double step = f.value(largest) - f.value(static_cast<uint16_t>(largest - 1));
  const auto limit = static_cast<float>(f.value(largest) + step / 2);
  EXPECT_EQ(f.narrow(limit), f.infinity());
  EXPECT_EQ(f.narrow(-limit), f.infinity() | 0x8000);
  EXPECT_EQ(f.narrow(std::nextafter(limit, 0.0f)), largest);
  EXPECT_EQ(f.narrow(kInf), f.infinity());
  EXPECT_EQ(f.narrow(-kInf), f.infinity() | 0x8000);
  EXPECT_EQ(f.narrow(std::numeric_limits<float>::max()), f.infinity());
}

TEST_P(Narrow, EveryNanStaysNan) {
  const Format16 f = GetParam();
  for (const uint32_t mantissa : {1u, 0x1fffu, 0x2000u, 0xffffu, 0x10000u, 0x400000u, 0x7fffffu}) {
    EXPECT_TRUE(f.is_nan(f.narrow(bits_float(0x7f800000u | mantissa)))) << mantissa;
    EXPECT_TRUE(f.is_nan(f.narrow(bits_float(0xff800000u | mantissa)))) << mantissa;
  }
}

TEST_P(Narrow, TinyValuesRoundToSignedZero) {
  const Format16 f = GetParam();
  EXPECT_EQ(f.narrow(0.0f), 0);
  EXPECT_EQ(f.narrow(-0.0f), 0x8000);
  EXPECT_EQ(f.narrow(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f.narrow(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

INSTANTIATE_TEST_SUITE_P(DType, Narrow, testing::Values(kF16, kBf16),
                         [](const testing::TestParamInfo<Format16>& format) {
                           return format.param.bias == 15 ? "fp16" : "bf16";
                         });

TEST(DType, SubnormalHalfs) {
  EXPECT_EQ(float_to_f16(0x1p-24f), 1);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0);  // a tie, to even
  EXPECT_EQ(float_to_f16(0x1.8p-24f), 2);
  EXPECT_EQ(float_to_f16(0x1.ff8p-15f), 0x3ff);  // the largest
  EXPECT_EQ(float_to_f16(0x1.ffap-15f), 0x3ff);
  EXPECT_EQ(float_to_f16(0x1.ffcp-15f), 0x400);  // a tie, to the smallest normal
}

/// The value of an e4m3 code by the format's definition, in double; NaN has none.
double e4m3_value(int code) {
  const int e = (code >> 3) & 15;
  const double fraction = (code & 7) / 8.0;
  const double magnitude = e == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, e - 7);
  return code & 0x80 ? -magnitude : magnitude;
}

TEST(E4m3, EveryCodeWidensToItsValueAndBack) {
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<uint8_t>(i);
    const float wide = e4m3_to_float(code);
    if ((i & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(wide)) << i;
      continue;
    }
    EXPECT_EQ(static_cast<double>(wide), e4m3_value(i)) << i;
    EXPECT_EQ(std::signbit(wide), (i & 0x80) != 0) << i;
    EXPECT_EQ(float_to_e4m3(wide), code) << i;
  }
  EXPECT_EQ(e4m3_value(0x7e), 448);
  EXPECT_EQ(e4m3_value(1), 0x1p-9);
}

TEST(E4m3, RoundsToNearestAndTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto tie = static_cast<float>((e4m3_value(code) + e4m3_value(code + 1)) / 2);
    const int even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(float_to_e4m3(tie), even) << code;
    EXPECT_EQ(float_to_e4m3(-tie), even | 0x80) << code;
    EXPECT_EQ(float_to_e4m3(std::nextafter(tie, 0.0f)), code) << code;
    EXPECT_EQ(float_to_e4m3(std::nextafter(tie, kInf)), code + 1) << code;
  }
}

TEST(E4m3, SaturatesAndKeepsNan) {
  for (const float large : {std::nextafter(448.0f, kInf), 464.0f, 480.0f, 1e38f, kInf}) {
    EXPECT_EQ(float_to_e4m3(large), 0x7e) << large;
    EXPECT_EQ(float_to_e4m3(-large), 0xfe) << large;
  }
  EXPECT_EQ(float_to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_e4m3(-0.0f), 0x80);
  for (const uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xffffffffu}) {
    EXPECT_EQ(float_to_e4m3(bits_float(nan)), 0x7f) << nan;
  }
}

TEST(DType, ElementsAreReadAndWrittenInTheirType) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::e4m3}) {
    alignas(4) uint8_t bytes[16] = {};
    write_float(t, bytes, 1, -1.75f);
    EXPECT_EQ(read_float(t, bytes, 1), -1.75f) << name_of(t);
    EXPECT_EQ(read_float(t, bytes, 0), 0) << name_of(t);
    EXPECT_EQ(read_float(t, bytes, 2), 0) << name_of(t);
    EXPECT_TRUE(is_floating(t)) << name_of(t);
  }
  EXPECT_FALSE(is_floating(DType::i32));
  EXPECT_FALSE(is_floating(DType::u8));
  EXPECT_FALSE(is_floating(DType::i8));
}

TEST(DType, NamesAndSizes) {
  EXPECT_STREQ(name_of(DType::f32), "fp32");
  EXPECT_STREQ(name_of(DType::i32), "int32");
  EXPECT_STREQ(name_of(DType::u8), "uint8");
  EXPECT_STREQ(name_of(DType::i8), "int8");
  EXPECT_STREQ(name_of(DType::e4m3), "fp8");
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::u8), 1u);
  EXPECT_EQ(size_of(DType::i8), 1u);
  EXPECT_EQ(size_of(DType::e4m3), 1u);
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(parse_float_dtype(name_of(t)), t);
  }
}

TEST(DType, RefusesOtherNames) {
  for (const char* name : {"", "int32", "fp8", "float", "FP16"}) {
    const std::string why = refusal_of([&] { parse_float_dtype(name); });
    EXPECT_EQ(why, "'" + std::string(name) + "' is not a floating type; use fp32, fp16 or bf16");
  }
}

}  // namespace
}  // namespace moegate::test
