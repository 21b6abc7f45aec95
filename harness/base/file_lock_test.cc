// SPDX-License-Identifier: Apache-2.0
#include "harness/base/file_lock.h"

#include <gtest/gtest.h>

#include "harness/base/scratch_fixture.h"

namespace moegate {
namespace {

TEST(FileLock, IsHeldByOne) {
  const ScratchFolder dir;
  {
    const FileLock mine(dir / ".lock");
    EXPECT_TRUE(mine.held());
    EXPECT_FALSE(FileLock(dir / ".lock").held());
    EXPECT_TRUE(FileLock(dir / ".other").held());
  }
  EXPECT_TRUE(FileLock(dir / ".lock").held());
  EXPECT_FALSE(FileLock(dir / "no" / ".lock").held());
  std::filesystem::create_symlink("elsewhere", dir / "link");
  EXPECT_FALSE(FileLock(dir / "link").held());
  EXPECT_FALSE(std::filesystem::exists(dir / "elsewhere"));
  const FileLock folder(dir.path());
  EXPECT_TRUE(folder.held());
  EXPECT_FALSE(FileLock(dir.path()).held());
}

}  // namespace
}  // namespace moegate
