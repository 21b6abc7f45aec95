// SPDX-License-Identifier: Apache-2.0
#include "harness/device/chill.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

TEST(FirstLine, IsTheLineThatTheAddressIsIn) {
  alignas(64) static const char lines[128] = {};
  EXPECT_EQ(first_line(lines), lines);
  EXPECT_EQ(first_line(lines + 63), lines);
  EXPECT_EQ(first_line(lines + 64), lines + 64);
}

}  // namespace
}  // namespace moegate::test
