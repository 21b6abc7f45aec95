// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/test_fixture.h"
#include "harness/device/open.h"

namespace moegate::test {
namespace {

TEST(Pci, SeesAGpuThatHasNoDriver) {
  const ScratchFolder bus;
  const auto add = [&](const std::string& address, const std::string& vendor,
                       const std::string& klass) {
    std::filesystem::create_directory(bus / address);
    std::ofstream(bus / address / "vendor") << vendor << "\n";
    std::ofstream(bus / address / "class") << klass << "\n";
  };
  EXPECT_EQ(nvidia_gpu(bus / "none"), "");
  add("0000:00:01.0", "0x1002", "0x030000");  // another maker's
  add("0000:00:02.0", "0x10de", "0x040300");  // the sound of one
  add("0000:00:03.0", "0x10de", "0x020000");  // a network card
  EXPECT_EQ(nvidia_gpu(bus.path()), "");
  add("0000:19:00.0", "0x10de", "0x030200");
  EXPECT_EQ(nvidia_gpu(bus.path()), "0000:19:00.0");
}

TEST(Pci, TheHostIsMeantByItsNameWhateverIsThere) {
  EXPECT_TRUE(means_host("host"));
  EXPECT_FALSE(means_host("cuda:1"));
}

}  // namespace
}  // namespace moegate::test
