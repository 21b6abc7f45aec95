// SPDX-License-Identifier: Apache-2.0
// Verification end to end on the host: the correctness suite, and what its controls prove.
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

// Under a sanitizer every third case of a suite is enough: unit tests run all kernels and
// checks there.
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
const std::string kShare = " --shard 1/3";
#else
const std::string kShare;
#endif

class VerifyTest : public ProgramTest {};

TEST_F(VerifyTest, VerifyCoversTheTinySuite) {
  const Outcome outcome = moegate("verify --suite tiny --device host" + kShare);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" ok"), std::string::npos) << outcome.out;
  EXPECT_EQ(saboteur("drop", "verify --suite tiny --device host --filter '^topk_sort/'").exit, 11);
}

TEST_F(VerifyTest, EveryControlOfTheTinySuiteIsRejected) {
  const Outcome outcome = moegate("verify --suite tiny --device host --controls" + kShare);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* name : {"constant", "experts swapped", "scaled by 1.05", "scales transposed",
                           "stale", "token dropped", "unwritten", "zeros"}) {
    EXPECT_NE(outcome.out.find(std::string("\n") + name), std::string::npos) << outcome.out;
  }
}

TEST_F(VerifyTest, ABlindToleranceFails) {
  write("blind.suite", "op = blind\n[loose]\ntolerance = 0.1\n[tight]\ntolerance = 0.01\n");
  const std::string verify = "verify --suite ./blind.suite --device host ";
  EXPECT_EQ(saboteur("none", verify).exit, 0);
  const Outcome blind = saboteur("none", verify + "--controls");
  EXPECT_EQ(blind.exit, 11) << blind.out;
  EXPECT_NE(blind.err.find("wrong blind/tolerance=0.1 ramp: blind tolerance: 'scaled by 1.05' of y "
                           "was accepted"),
            std::string::npos)
      << blind.err;
  EXPECT_EQ(saboteur("none", verify + "--controls --filter tolerance=0.01").exit, 0);
}

}  // namespace
}  // namespace moegate::test
