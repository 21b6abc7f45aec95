// SPDX-License-Identifier: Apache-2.0
#include "harness/store/packed_spans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/base/rng.h"

namespace moegate::test {
namespace {

/// Around 5 us with a spread of 1 %, in steps of `tick` ns.
std::vector<float> spans_of_timer(int tick, size_t count = 200) {
  std::vector<float> spans;
  for (size_t i = 0; i < count; ++i) {
    const double ns = 5000 * (1 + 0.01 * random_normal(1, 2, i));
    const double rest = tick > 1 ? std::round(0.6 * random_normal(1, 3, i)) : 0;
    spans.push_back(static_cast<float>(std::round(ns / tick) * tick + rest));
  }
  return spans;
}

/// Expects what was packed back, bit by bit. Returns its bytes.
size_t expect_back(const std::vector<float>& spans, Packing packing) {
  const PackedSpans packed = pack_spans(spans);
  EXPECT_EQ(packed.packing, packing);
  const auto back = unpack_spans(packed.packing, packed.bytes);
  EXPECT_TRUE(back.has_value());
  if (!back) return 0;
  EXPECT_EQ(back->size(), spans.size());
  for (size_t i = 0; i < std::min(spans.size(), back->size()); ++i) {
    EXPECT_EQ(std::signbit((*back)[i]), std::signbit(spans[i])) << i;
    EXPECT_TRUE((*back)[i] == spans[i] || (std::isnan(spans[i]) && std::isnan((*back)[i]))) << i;
  }
  return packed.bytes.size();
}

TEST(PackedSpans, SpansOfATimerTakeAQuarterOfTheBytes) {
  EXPECT_LT(expect_back(spans_of_timer(32), Packing::rice), 200u);
  EXPECT_LT(expect_back(spans_of_timer(1), Packing::rice), 250u);
}

TEST(PackedSpans, WhatIsFarOffComesBack) {
  std::vector<float> spans = spans_of_timer(32);
  spans[3] = 0;
  spans[7] = 1 << 29;  // half a second
  spans[8] = 16777215;
  expect_back(spans, Packing::rice);
  expect_back(std::vector<float>(1000, 5000.0F), Packing::rice);
}

TEST(PackedSpans, WhatIsNoWholeNumberStaysAsItIs) {
  for (const float odd : {0.5F, -1.0F, -0.0F, 2e9F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> spans = spans_of_timer(32);
    spans[5] = odd;
    EXPECT_EQ(expect_back(spans, Packing::plain), 800u);
  }
  EXPECT_EQ(expect_back({}, Packing::plain), 0u);
  EXPECT_EQ(expect_back({7000}, Packing::plain), 4u) << "shorter than the head";
}

TEST(PackedSpans, BytesThatNobodyPackedAreRefusedOrRead) {
  const std::vector<std::byte> good = pack_spans(spans_of_timer(32)).bytes;
  const auto refused = [](const std::vector<std::byte>& bytes) {
    return !unpack_spans(Packing::rice, bytes).has_value();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({good.begin(), good.end() - 9})) << "spans are missing";
  for (const size_t at : {3u, 7u, 8u, 9u, 10u}) {  // count, median, step, codes
    std::vector<std::byte> bad = good;
    bad[at] = std::byte{0xff};
    EXPECT_TRUE(refused(bad)) << at;
  }
  for (uint64_t i = 0; i < 2000; ++i) {  // any bytes: no more spans than bits
    std::vector<std::byte> bytes = good;
    for (uint64_t k = 0; k < 4; ++k)
      bytes[random_bits(1, i, k) % bytes.size()] = std::byte(random_bits(2, i, k) & 0xff);
    const auto spans = unpack_spans(Packing::rice, bytes);
    EXPECT_LE(spans ? spans->size() : 0, bytes.size() * 8);
  }
  EXPECT_FALSE(unpack_spans(static_cast<Packing>(7), good));
}

}  // namespace
}  // namespace moegate::test
