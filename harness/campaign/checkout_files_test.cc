// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/checkout.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class CheckoutFiles : public testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string list() const { return list_files(folder_.path()); }

  ScratchFolder folder_;
};

TEST_F(CheckoutFiles, AreNeverKeptWhereOthersMayWrite) {
  const ScopedVariable no_home("HOME", ""), no_cache("XDG_CACHE_HOME", "");
  const std::string why = refusal_of([] { cache_of_repository("/repo"); }, Exit::usage);
  EXPECT_NE(why.find("/repo: HOME and XDG_CACHE_HOME are not set"), std::string::npos) << why;
  const ScopedVariable home("HOME", folder_.path());
  EXPECT_TRUE(cache_of_repository("/repo").string().starts_with(folder_.path().string()));
}

TEST_F(CheckoutFiles, WhatIsAddedChangedOrRemovedIsNamed) {
  write("a b", "1");
  write("deep/er/file", "1");
  write(".git/index", "1");
  const std::string before = list();
  EXPECT_EQ(first_difference(before, list()), "");
  write("deep/__pycache__/x.pyc", "1");
  write(".git/index", "22");
  EXPECT_EQ(first_difference(before, list()), "") << "git's and Python's own";
  write("deep/er/more", "1");
  EXPECT_EQ(first_difference(before, list()), "deep/er/more");
  const std::string now = with_added(before, list());
  EXPECT_EQ(first_difference(now, list()), "");
  fs::remove(folder_ / "a b");
  EXPECT_EQ(first_difference(now, list()), "a b");
}

TEST_F(CheckoutFiles, AChangeShowsThoughItsTimeIsPutBack) {
  write("file", "1");
  const fs::path file = folder_ / "file";
  const auto time = fs::last_write_time(file);
  const std::string before = list();
  write("file", "2");
  fs::last_write_time(file, time);
  EXPECT_EQ(first_difference(before, list()), "file");
  EXPECT_EQ(with_added(before, list()), before) << "a change is no addition";
}

}  // namespace
}  // namespace moegate::test
