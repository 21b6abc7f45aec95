// SPDX-License-Identifier: Apache-2.0
#include "harness/values/roofline.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

constexpr int64_t kCache = 60 << 20;
const std::map<std::string, double> kCeilings = {{"read_bytes_per_s", 4e12}, {"fp8_flops", 1.5e15}};

TEST(Plausibility, FasterThanMemoryIsImpossible) {
  const Cost cost{.flops = 0, .read_bytes = 4e6, .write_bytes = 0};  // 1000 ns at the ceiling
  EXPECT_TRUE(is_impossible(890, cost, kCeilings, kCache));
  EXPECT_FALSE(is_impossible(910, cost, kCeilings, kCache));
  EXPECT_FALSE(is_impossible(1, cost, {}, kCache));  // nothing measured, nothing claimed
}

TEST(Plausibility, WritesMayStayInTheCache) {
  const Cost cost{.flops = 0, .read_bytes = 0, .write_bytes = 40e6};
  EXPECT_FALSE(is_impossible(100, cost, kCeilings, kCache));
  EXPECT_TRUE(is_impossible(100, cost, kCeilings, 1 << 20));
}

TEST(Plausibility, FasterThanTheTensorCoresIsImpossible) {
  const Cost cost{.flops = 1.5e9, .read_bytes = 0, .write_bytes = 0};  // 1000 ns
  EXPECT_TRUE(is_impossible(890, cost, kCeilings, kCache));
  EXPECT_FALSE(is_impossible(1100, cost, kCeilings, kCache));
}

TEST(Plausibility, ColdLikeWarmIsSuspectOnlyWhereReadingShows) {
  const Cost large{.flops = 0, .read_bytes = 16e6, .write_bytes = 0};
  EXPECT_TRUE(looks_warm(3400, 3350, large, kCache));
  EXPECT_FALSE(looks_warm(5500, 3350, large, kCache));
  EXPECT_FALSE(looks_warm(3400, 3350, large, 1 << 20));  // never fitted
  const Cost small{.flops = 0, .read_bytes = 1e4, .write_bytes = 0};
  EXPECT_FALSE(looks_warm(3400, 3350, small, kCache));
}

TEST(Plausibility, ReadingLessThanMustBeReadCameFromTheCache) {
  const Cost cost{.flops = 0, .read_bytes = 16e6, .write_bytes = 0};
  Result result;
  EXPECT_FALSE(came_from_cache(result, cost));  // nobody counted
  result.metrics = {{"dram__bytes_read.sum", "byte", 1e6, 0}};
  EXPECT_FALSE(came_from_cache(result, cost));  // of one kernel
  result.metrics.push_back({"dram__bytes_read.sum", "byte", 15.4e6});
  EXPECT_TRUE(came_from_cache(result, cost));
  result.metrics.back().value = 15.6e6;
  EXPECT_FALSE(came_from_cache(result, cost));
  result.metrics.back().value = 1e3;
  EXPECT_FALSE(came_from_cache(result, {.flops = 0, .read_bytes = 1e6, .write_bytes = 0}));
}

}  // namespace
}  // namespace moegate::test
