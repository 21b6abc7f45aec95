// SPDX-License-Identifier: Apache-2.0
// What random tensors are filled with, and that a GPU fills them with the same bits.
#include "harness/kernel/random_fill.h"
#include "harness/device/open.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "harness/kernel/tensor.h"

namespace moegate::test {
namespace {

// More than a GPU's grid and than the host fills with one thread, and a multiple of neither.
constexpr int64_t kMany = 1'000'003;

template <class T>
std::vector<T> filled(Device& device, DType dtype, int64_t elements, const RandomFill& what) {
  Tensor tensor(device, "x", Role::weight, dtype, {elements});
  tensor.fill_random(what);
  const auto values = tensor.download<T>();
  EXPECT_TRUE(tensor.guards_intact());
  return values;
}

RandomFill codes(uint64_t seed = 1, uint64_t stream = 2) {
  return {RandomFill::Kind::int4_normal, seed, stream};
}

RandomFill fp8(uint64_t seed = 1, uint64_t stream = 2) {
  return {RandomFill::Kind::e4m3_normal, seed, stream, DType::e4m3};
}

RandomFill uniform(DType dtype, float low, float high) {
  return {RandomFill::Kind::uniform, 1, 2, dtype, low, high};
}

TEST(RandomFill, CodesAreBinomialAroundTheirOffset) {
  const auto host = open_host_device();
  std::vector<double> share(16);
  for (const uint8_t byte : filled<uint8_t>(*host, DType::u8, 2 * kMany, codes())) {
    share[byte & 15] += 0.25 / kMany;
    share[byte >> 4] += 0.25 / kMany;
  }
  double choose = 1;  // 15 over code
  for (int code = 0; code < 16; ++code) {
    const double expected = std::ldexp(choose, -15);
    EXPECT_NEAR(share[static_cast<size_t>(code)], expected,
                5 * std::sqrt(expected / 4 / kMany))  // five standard errors
        << code;
    choose = choose * (15 - code) / (code + 1);
  }
}

TEST(RandomFill, CodesComeFromTheirOwnBitsLowNibbleFirst) {
  const auto host = open_host_device();
  const auto bytes = filled<uint8_t>(*host, DType::u8, 8, codes(7, 9));
  for (uint64_t i = 0; i < 16; ++i) {
    const uint64_t bits = random_bits(7, 9, i / 4) >> (16 * (i % 4));
    const int code = i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
    EXPECT_EQ(code, std::popcount(bits & 0x7fff)) << i;
  }
}

TEST(RandomFill, BitsAreEvenAndBytesStayBetweenTheirEnds) {
  const auto host = open_host_device();
  std::vector<double> codes(16), bytes(256);
  for (const uint8_t byte :
       filled<uint8_t>(*host, DType::u8, 2 * kMany, {RandomFill::Kind::bits, 1, 2})) {
    codes[byte & 15] += 0.25 / kMany;
    codes[byte >> 4] += 0.25 / kMany;
  }
  for (const double share : codes) EXPECT_NEAR(share, 1 / 16.0, 0.001);
  for (const uint8_t byte : filled<uint8_t>(*host, DType::u8, 2 * kMany,
                                            {RandomFill::Kind::bytes, 1, 2, DType::u8, 116, 122})) {
    bytes[byte] += 0.5 / kMany;
  }
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_NEAR(bytes[i], i >= 116 && i <= 122 ? 1 / 7.0 : 0, i >= 116 && i <= 122 ? 0.002 : 0);
  }
}

TEST(RandomFill, Fp8CodesAreNormalWithEveryZeroAndSubnormal) {
  const auto host = open_host_device();
  double sum = 0, squares = 0, cubes = 0, fourths = 0, small = 0;
  std::vector<int> uses(256);
  for (const uint8_t code : filled<uint8_t>(*host, DType::e4m3, 2 * kMany, fp8())) {
    ++uses[code];
    const double value = e4m3_to_float(code);
    small += std::abs(value) < 0x1p-6;
    sum += value;
    squares += value * value;
    cubes += value * value * value;
    fourths += value * value * value * value;
  }
  EXPECT_EQ(uses[0x7f] + uses[0xff], 0) << "NaN";
  for (const int sign : {0, 0x80}) {
    for (int code = sign; code < sign + 8; ++code) EXPECT_GT(uses[static_cast<size_t>(code)], 0);
  }
  const double n = 2.0 * kMany, variance = squares / n;
  EXPECT_NEAR(small / n, 1 / 370.0, 2e-4);
  EXPECT_NEAR(std::sqrt(variance), 129.3, 0.3);
  EXPECT_NEAR(sum / n, 0, 0.5);
  EXPECT_NEAR(cubes / n / std::pow(variance, 1.5), 0, 0.02);
  EXPECT_NEAR(fourths / n / (variance * variance), 2.7, 0.03);  // of four uniforms: 3 - 1.2 / 4
}

TEST(RandomFill, Fp8CodesComeFromTheirOwnBits) {
  const auto host = open_host_device();
  const auto codes = filled<uint8_t>(*host, DType::e4m3, 64, fp8(7, 9));
  for (uint64_t i = 0; i < codes.size(); ++i) {
    const auto bits = static_cast<uint32_t>(random_bits(7, 9, i / 2) >> (i % 2 * 32));
    EXPECT_EQ(codes[i], e4m3_normal_code(bits)) << i;
  }
  EXPECT_EQ(e4m3_normal_code(0), 0xfe);           // -446.25
  EXPECT_EQ(e4m3_normal_code(0xffffffff), 0x7e);  // 446.25
  EXPECT_EQ(e4m3_normal_code(0x807f807f), 0x07);  // sum 510: bits of the first byte
  EXPECT_EQ(e4m3_normal_code(0x808080ff), 0x6e);  // 129 * 0.875 = 112.875, to 112
}

TEST(RandomFill, Int8IsNormalWithBothEnds) {
  const auto host = open_host_device();
  double sum = 0, squares = 0, ends = 0;
  const RandomFill fill = {RandomFill::Kind::int8_normal, 1, 2, DType::i8};
  for (const int8_t value : filled<int8_t>(*host, DType::i8, 2 * kMany, fill)) {
    ASSERT_GE(value, -127);
    ends += std::abs(value) == 127;
    sum += value;
    squares += value * value;
  }
  const double n = 2.0 * kMany;
  EXPECT_NEAR(ends / n, 1 / 860.0, 1.5e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 36.9, 0.15);
  EXPECT_NEAR(sum / n, 0, 0.2);
  EXPECT_EQ(int8_normal_code(0), 0x81);
  EXPECT_EQ(int8_normal_code(0xffffffff), 0x7f);
  EXPECT_EQ(int8_normal_code(0x807f807f), 0);     // sum 510
  EXPECT_EQ(int8_normal_code(0x80808070), 0xfd);  // 14 less
  EXPECT_EQ(int8_normal_code(0x8080ee10), 0x7f);  // 510, of a first byte that makes ends
  EXPECT_EQ(int8_normal_code(0x8080de20), 0x81);
}

TEST(RandomFill, UniformStaysBetweenItsLimitsInEveryType) {
  const auto host = open_host_device();
  const auto wide = filled<float>(*host, DType::f32, kMany, uniform(DType::f32, -0.5f, 1.5f));
  const auto half = filled<uint16_t>(*host, DType::f16, kMany, uniform(DType::f16, -0.5f, 1.5f));
  const auto brain = filled<uint16_t>(*host, DType::bf16, kMany, uniform(DType::bf16, -0.5f, 1.5f));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    ASSERT_GE(wide[i], -0.5f);
    ASSERT_LE(wide[i], 1.5f);
    ASSERT_EQ(half[i], float_to_f16(wide[i])) << i;
    ASSERT_EQ(brain[i], float_to_bf16(wide[i])) << i;
    sum += wide[i];
    squares += double{wide[i]} * wide[i];
  }
  EXPECT_NEAR(sum / kMany, 0.5, 0.003);
  EXPECT_NEAR(squares / kMany - 0.25, 1.0 / 3, 0.003);
}

TEST(RandomFill, AnElementDependsOnSeedStreamAndPlaceAlone) {
  const auto host = open_host_device();
  const auto few = filled<uint8_t>(*host, DType::u8, 64, codes());
  auto many = filled<uint8_t>(*host, DType::u8, 2 * kMany, codes());
  many.resize(few.size());
  EXPECT_EQ(many, few);
  EXPECT_NE(filled<uint8_t>(*host, DType::u8, 64, codes(2, 2)), few);
  EXPECT_NE(filled<uint8_t>(*host, DType::u8, 64, codes(1, 3)), few);
}

TEST(RandomFill, RefusesAnotherTypeAndHalfAUnit) {
  const auto host = open_host_device();
  Tensor bytes(*host, "odd", Role::weight, DType::u8, {3});
  EXPECT_THROW(bytes.fill_random(codes()), Error);
  EXPECT_THROW(bytes.fill_random(fp8()), Error);
  Tensor half(*host, "half", Role::weight, DType::f16, {4});
  EXPECT_THROW(half.fill_random(codes()), Error);
  EXPECT_THROW(half.fill_random(uniform(DType::bf16, 0, 1)), Error);
}

TEST(CudaRandomFill, HasTheBitsOfTheHost) {
  std::string why;
  if (cuda_devices(&why).empty()) GTEST_SKIP() << "no CUDA device: " << why;
  const auto host = open_host_device(), cuda = open_cuda_device(0);
  EXPECT_EQ(filled<uint8_t>(*cuda, DType::u8, 2 * kMany, codes()),
            filled<uint8_t>(*host, DType::u8, 2 * kMany, codes()));
  EXPECT_EQ(filled<uint8_t>(*cuda, DType::e4m3, 2 * kMany, fp8()),
            filled<uint8_t>(*host, DType::e4m3, 2 * kMany, fp8()));
  const float low = 0.75f / 53.7f, high = 1.25f / 53.7f;  // not exact in any of the types
  EXPECT_EQ(filled<float>(*cuda, DType::f32, kMany, uniform(DType::f32, low, high)),
            filled<float>(*host, DType::f32, kMany, uniform(DType::f32, low, high)));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    EXPECT_EQ(filled<uint16_t>(*cuda, dtype, kMany, uniform(dtype, low, high)),
              filled<uint16_t>(*host, dtype, kMany, uniform(dtype, low, high)))
        << name_of(dtype);
  }
}

}  // namespace
}  // namespace moegate::test
