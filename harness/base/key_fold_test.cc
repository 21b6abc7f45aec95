// SPDX-License-Identifier: Apache-2.0
#include "harness/base/key_fold.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

using Keys = std::vector<std::string>;

TEST(KeyFold, SharedPartsAreSaidOnce) {
  const FoldedKeys folded = fold_keys(
      {"sort/experts=8,tokens=1,cache=cold,topk=2", "sort/experts=8,tokens=20,cache=warm,topk=2"});
  EXPECT_EQ(folded.keys, (Keys{"…tokens=1,cache=cold…", "…tokens=20,cache=warm…"}));
  EXPECT_EQ(folded.shared, "sort/experts=8,tokens=…,cache=…,topk=2");
}

TEST(KeyFold, KeysMayHaveOtherParts) {
  const FoldedKeys folded = fold_keys({"sort/tokens=1,topk=2", "sum/k=7,tokens=1"});
  EXPECT_EQ(folded.keys, (Keys{"sort…topk=2", "sum/k=7…"}));
  EXPECT_EQ(folded.shared, "…/tokens=1,topk=…");
}

TEST(KeyFold, OnlyKeysOfPartsAreFolded) {
  for (const Keys& keys : {Keys{}, Keys{"a/b=1"}, Keys{"one, two", "one, three"},
                           Keys{"a/b=1", "plain"}, Keys{"a/b=1", "c/b=2"}}) {
    EXPECT_EQ(fold_keys(keys).shared, "");
    EXPECT_EQ(fold_keys(keys).keys, Keys{});
  }
}

}  // namespace
}  // namespace moegate
