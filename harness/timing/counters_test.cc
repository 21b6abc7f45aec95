// SPDX-License-Identifier: Apache-2.0
// What a chip counts is known without one, where CUPTI is.
#include "harness/timing/profiler.h"

#include <gtest/gtest.h>

#include <set>

#ifdef MOEGATE_HAS_CUDA
#include "harness/base/error.h"
#include "harness/base/test_fixture.h"
#include "harness/timing/cuda/cupti_counters.h"
#endif

namespace moegate::test {
namespace {

TEST(CounterNames, AreDifferent) {
  const auto& all = default_counters();
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
}

#ifdef MOEGATE_HAS_CUDA
/// Skipped, with the reason, where the toolkit's profiling libraries are missing.
class CounterPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      const CounterPlan plan("GH100", {"dram__bytes_read.sum"});
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

TEST_F(CounterPlanTest, TheDefaultOnesTakeEightPassesOnHopper) {
  const CounterPlan plan("GH100", default_counters());
  EXPECT_LE(plan.passes(), 8u);
  EXPECT_EQ(plan.units().size(), plan.metrics().size());
  EXPECT_EQ(plan.units()[0], "byte");  // dram__bytes_read.sum
}

TEST_F(CounterPlanTest, AnUnknownMetricNamesNearOnes) {
  for (const char* wrong : {"dram__bytes_reed.sum", "dram__bytes_read"}) {
    const std::string why = refusal_of([&] { const CounterPlan plan("GH100", {wrong}); });
    EXPECT_NE(why.find("dram__bytes_read.sum"), std::string::npos) << why;
  }
}

TEST_F(CounterPlanTest, AnUnknownChipIsAnError) {
  EXPECT_THROW(CounterPlan("GX999", {"dram__bytes_read.sum"}), Error);
}
#endif

}  // namespace
}  // namespace moegate::test
