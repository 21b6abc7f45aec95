// SPDX-License-Identifier: Apache-2.0
#include "harness/base/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
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

TEST(Cpus, SharesAreWholeCoresAndHaveEveryCpuOnce) {
  const std::vector<Cpus> cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(cpu_shares(cores, 2), (std::vector<Cpus>{{0, 4, 1, 5}, {2, 6, 3, 7}}));
  const std::vector<Cpus> three = cpu_shares(cores, 3);
  std::set<int> all;
  for (const Cpus& share : three) {
    EXPECT_GE(share.size(), 2u);
    for (const int cpu : share) EXPECT_TRUE(all.insert(cpu).second) << cpu << " twice";
  }
  EXPECT_EQ(all.size(), 8u);
}

TEST(Cpus, OneProcessAndTooFewCoresShareAll) {
  EXPECT_EQ(cpu_shares({{0}, {1}}, 1), std::vector<Cpus>(1));
  EXPECT_EQ(cpu_shares({{0, 1}}, 2), std::vector<Cpus>(2)) << "half a core is no core of its own";
}

TEST(Cpus, NeighboursOfACoreAreTogetherAndSocketsApart) {
  const std::vector<Cpus> mine = usable_cores("/nowhere");  // each a core of its own
  ASSERT_FALSE(mine.empty());
  for (const Cpus& core : mine) ASSERT_EQ(core.size(), 1u);
  // As many systems number them: the second thread of every core in the second half.
  ScratchFolder folder;
  const size_t half = (mine.size() + 1) / 2;
  for (size_t i = 0; i < mine.size(); ++i) {
    const int cpu = mine[mine.size() - 1 - i][0];  // unknown ones come last first
    const auto place = folder / ("cpu" + std::to_string(cpu)) / "topology";
    std::filesystem::create_directories(place);
    std::ofstream(place / "core_id") << i % half;
    std::ofstream(place / "physical_package_id") << 0;
  }
  const std::vector<Cpus> cores = usable_cores(folder.path());
  EXPECT_EQ(cores.size(), half);
  const auto most = std::ranges::max(cores, {}, &Cpus::size);
  EXPECT_EQ(most.size(), mine.size() > 1 ? 2u : 1u);
}

}  // namespace
}  // namespace moegate::test
