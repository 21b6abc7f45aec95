// SPDX-License-Identifier: Apache-2.0
// Every variant that cheats or breaks is called what it is, by the program that it is linked into.
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

constexpr const char* kLittle =
    " --min-samples 100 --max-samples 200 --budget 200ms --case-timeout 20s";

class SaboteurTest : public ProgramTest {
 protected:
  Outcome released(const std::string& device) const {
    return shell(saboteurs() +
                 " selftest saboteurs --suite " MOEGATE_SOURCE_DIR
                 "/tests/saboteurs/saboteurs.suite --device " +
                 device + kLittle);
  }
};

TEST_F(SaboteurTest, EveryOneIsCaughtOnTheHost) {
  const Outcome outcome = released("host");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("wrong_once_in_a_hundred "), std::string::npos) << outcome.out;
}

TEST_F(SaboteurTest, TheToolThatShipsHasNone) {
  const Outcome outcome = shell(program() + " selftest saboteurs --suite smoke --device host");
  EXPECT_EQ(outcome.exit, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("moegate_saboteurs"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace moegate::test
