// SPDX-License-Identifier: Apache-2.0
#include "harness/values/row_profile.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

Result timed_process(double span_ns, double mhz, double kernel_ns) {
  Result result;
  result.span_ns = span_ns;
  result.sm_mhz = mhz;
  result.kernels = {{.name = "k", .ns = kernel_ns}};
  return result;
}

TEST(RowProfile, IsOfTheMedianProcess) {
  std::vector<Result> processes = {timed_process(30, 1900, 29), timed_process(10, 1980, 9),
                                   timed_process(20, 1700, 25)};
  processes[1].path = "other";
  processes.push_back(timed_process(1, 1, 1));
  processes[3].status = Status::crashed;
  processes.emplace_back();  // not timed
  const auto result = typical(processes);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->span_ns, 20);
  EXPECT_EQ(result->path, "");
  EXPECT_EQ(result->sm_mhz, 1900);
  EXPECT_EQ(result->kernels[0].ns, 25);
}

TEST(RowProfile, ProcessesThatLaunchedMoreAreLeftOut) {
  std::vector<Result> processes = {timed_process(10, 1980, 9), timed_process(20, 1980, 19),
                                   timed_process(30, 1000, 29)};
  processes[2].kernels.emplace_back();
  const auto result = typical(processes);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->kernels.size(), 1u);
  EXPECT_EQ(result->sm_mhz, 1980);
  EXPECT_FALSE(typical({}));
}

}  // namespace
}  // namespace moegate::test
