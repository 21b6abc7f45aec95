// SPDX-License-Identifier: Apache-2.0
#include "harness/base/home.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/base/error.h"
#include "harness/base/refusal_fixture.h"
#include "harness/base/scratch_fixture.h"

namespace moegate {
namespace {
namespace fs = std::filesystem;

class HomeTest : public testing::Test {
 protected:
  HomeTest() {
    if (const char* set = std::getenv("MOEGATE_HOME")) before_ = set;
    fs::create_directories(folder_ / "suites");
  }
  ~HomeTest() override {
    if (before_.empty()) {
      unsetenv("MOEGATE_HOME");
    } else {
      setenv("MOEGATE_HOME", before_.c_str(), 1);
    }
  }

  ScratchFolder folder_;
  std::string before_;
};

TEST_F(HomeTest, TheEnvironmentWins) {
  fs::create_directories(folder_ / "reports");
  setenv("MOEGATE_HOME", folder_.path().c_str(), 1);
  EXPECT_EQ(home(), folder_.path());
}

TEST_F(HomeTest, AWrongEnvironmentIsAnErrorThatNamesIt) {
  setenv("MOEGATE_HOME", folder_.path().c_str(), 1);
  const std::string why = refusal_of([&] { home(); }, Exit::environment);
  EXPECT_NE(why.find(folder_.path().string()), std::string::npos) << why;
}

TEST_F(HomeTest, EmptyEnvironmentMeansAboveTheProgram) {
  setenv("MOEGATE_HOME", "", 1);
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
