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
}

}  // namespace
}  // namespace moegate
