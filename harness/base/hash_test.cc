// SPDX-License-Identifier: Apache-2.0
#include "harness/base/hash.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(sha256(std::string("a\0", 2)), sha256("a"));
}

TEST(Sha256, OfWhatStandsBeforeAPlace) {
  const std::string text = "one\ntwo\nthree\n";
  EXPECT_EQ(
      sha256_before(text, {0, 4, 8, text.size()}),
      (std::vector<std::string>{sha256(""), sha256("one\n"), sha256("one\ntwo\n"), sha256(text)}));
}

}  // namespace
}  // namespace moegate::test
