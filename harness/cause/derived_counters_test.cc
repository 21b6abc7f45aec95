// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/derived_counters.h"

#include <gtest/gtest.h>

#include "harness/cause/cause_fixture.h"

namespace moegate {
namespace {

TEST(DerivedCounters, AreCountsOverTimeAndInstructions) {
  std::vector<Metric> counters = counted_row().metrics;
  const auto derived = derived_counters(counters);
  ASSERT_EQ(derived.size(), 6u) << "selected is no stall";
  EXPECT_EQ(derived[0].name, "DRAM throughput");
  EXPECT_NEAR(derived[0].value, 100 * 17.9e6 / 10e-6 / 4.8e12, 1e-9);
  EXPECT_EQ(derived[1].name, "tensor cycles");
  EXPECT_NEAR(derived[1].value, 0.61 * 17000, 1e-9);
  EXPECT_EQ(derived[2].name, "stalled on long_scoreboard");
  EXPECT_EQ(derived[2].value, 8);
  for (Metric& m : counters) m.ordinal = 0;
  EXPECT_TRUE(derived_counters(counters).empty()) << "of the whole launch only";
}

}  // namespace
}  // namespace moegate
