// SPDX-License-Identifier: Apache-2.0
#include "harness/base/in_order.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/base/rng.h"

namespace moegate {
namespace {

TEST(InOrder, FindsWhatTheMapFindsInWhateverOrder) {
  std::map<int, int> map;
  for (int i = 0; i < 200; ++i) map[3 * i] = i;
  InOrder ascending(map), descending(map), drawn(map);
  for (int key = -2; key < 610; ++key) {
    EXPECT_EQ(ascending.find(key), map.find(key)) << key;
    EXPECT_EQ(ascending.find(key), map.find(key)) << key << " again";
    EXPECT_EQ(descending.find(610 - key), map.find(610 - key)) << 610 - key;
    const int any = static_cast<int>(random_bits(7, 0, static_cast<uint64_t>(key + 2)) % 620);
    EXPECT_EQ(drawn.find(any), map.find(any)) << any;
  }
}

TEST(InOrder, OfAnEmptyMapIsNothing) {
  const std::map<int, int> map;
  InOrder in_order(map);
  EXPECT_EQ(in_order.find_or_null(3), nullptr);
}

}  // namespace
}  // namespace moegate
