// SPDX-License-Identifier: Apache-2.0
#include "harness/base/home.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/base/refusal_fixture.h"
#include "harness/base/scratch_fixture.h"
#include "harness/base/variable_fixture.h"

namespace moegate {
namespace {
namespace fs = std::filesystem;

class HomeTest : public testing::Test {
 protected:
  HomeTest() { fs::create_directories(folder_ / "suites"); }

  ScratchFolder folder_;
};

TEST_F(HomeTest, TheEnvironmentWins) {
  fs::create_directories(folder_ / "reports");
  const ScopedVariable named("MOEGATE_HOME", folder_.path());
  EXPECT_EQ(home(), folder_.path());
}

TEST_F(HomeTest, AWrongEnvironmentIsAnErrorThatNamesIt) {
  const ScopedVariable named("MOEGATE_HOME", folder_.path());
  const std::string why = refusal_of([&] { home(); }, Exit::environment);
  EXPECT_NE(why.find(folder_.path().string()), std::string::npos) << why;
}

TEST_F(HomeTest, EmptyEnvironmentMeansAboveTheProgram) {
  const ScopedVariable empty("MOEGATE_HOME", "");
  try {
    const fs::path found = home();
    EXPECT_TRUE(fs::is_directory(found / "suites"));
    EXPECT_TRUE(fs::is_directory(found / "reports"));
  } catch (const Error& e) {  // a build outside of the source tree
    EXPECT_EQ(e.code(), Exit::environment);
    EXPECT_NE(std::string(e.what()).find("MOEGATE_HOME"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace moegate
