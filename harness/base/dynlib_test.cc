// SPDX-License-Identifier: Apache-2.0
#include "harness/base/dynlib.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <filesystem>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class DynlibTest : public ::testing::Test {
 protected:
  /// Some library, called so, in a Python environment called so. Returns its path.
  std::string packaged(const std::string& environment, const std::string& soname) {
    link_map* some = nullptr;
    dlinfo(dlopen("libm.so.6", RTLD_NOW), RTLD_DI_LINKMAP, &some);
    const fs::path folder =
        folder_ / environment / "lib/python3.11/site-packages/nvidia/cuda_cupti/lib";
    fs::create_directories(folder);
    fs::copy_file(fs::canonical(some->l_name), folder / soname);
    return (folder / soname).string();
  }
  const ScratchFolder folder_;
};

TEST_F(DynlibTest, FindsNvidiasPythonPackages) {
  const std::string path = packaged("env", "libmoegate_test.so.12");
  EXPECT_FALSE(Dynlib({"libmoegate_test.so.12"}));
  const ScopedVariable set("VIRTUAL_ENV", folder_ / "env");
  EXPECT_EQ(Dynlib({"libmoegate_test.so.12"}).path(), path);
}

TEST_F(DynlibTest, TheFirstNameThatIsAnywhereWins) {
  packaged("first", "libmoegate_test.so.12");
  const std::string wanted = packaged("second", "libmoegate_test.so.13");
  const ScopedVariable first("VIRTUAL_ENV", folder_ / "first");
  const ScopedVariable second("CONDA_PREFIX", folder_ / "second");
  EXPECT_EQ(Dynlib({"libmoegate_test.so.13", "libmoegate_test.so.12"}).path(), wanted);
}

TEST_F(DynlibTest, WhatIsNowhereSaysSo) {
  const Dynlib none({"libmoegate_test.so.12", "libmoegate_test.so.13"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.why().find("libmoegate_test.so.12"), std::string::npos) << none.why();
  EXPECT_EQ(none.path(), "");
}

}  // namespace
}  // namespace moegate::test
