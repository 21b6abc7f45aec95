// SPDX-License-Identifier: Apache-2.0
// What is said where CUPTI fails; a GPU is not needed, the toolkit's CUPTI is.
#include <gtest/gtest.h>

#ifdef MOEGATE_HAS_CUDA
#include "harness/base/test_fixture.h"
#include "harness/timing/cuda/cupti_lib.h"

namespace moegate::test {
namespace {

struct NoFunctions : CuptiLib {};
struct UnknownFunction : CuptiLib {
  void (*missing)() = bound<void (*)()>("cuptiNobodyHasThis");
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CuptiLib, NamesTheRemedy) {
  const NoFunctions lib;
  if (!lib.why().empty()) GTEST_SKIP() << lib.why();
  EXPECT_EQ(lib.failure(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "enabling"),
            "enabling fails with CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES; the "
            "hypervisor has to allow profiling on this virtual GPU");
  EXPECT_TRUE(says(lib.failure(CUPTI_ERROR_UNKNOWN, "x"), "libnvperf_host"));
  const std::string why = UnknownFunction().why();
  EXPECT_TRUE(says(why, "cuptiNobodyHasThis") && says(why, "install the CUPTI")) << why;
}

TEST(CuptiLib, CountersAndStallsHaveOneRemedy) {
  if (const NoFunctions lib; !lib.why().empty()) GTEST_SKIP() << lib.why();
  constexpr CUptiResult kRights = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const std::string said = NoFunctions().failure(kRights, "enabling");
  EXPECT_TRUE(says(said, "NVreg_RestrictProfilingToAdminUsers=0")) << said;
#ifdef MOEGATE_HAS_RANGE_PROFILER
  EXPECT_EQ(refusal_of([] { require_counters(kRights, "enabling"); }, Exit::environment),
            "counters cannot be read: " + said);
#endif
  EXPECT_EQ(refusal_of([] { require_pc(kRights, "enabling"); }, Exit::environment),
            "stalls cannot be sampled: " + said);
}

}  // namespace
}  // namespace moegate::test
#endif
