// SPDX-License-Identifier: Apache-2.0
// A shared expert beside any other routing.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/test_fixture.h"
#include "harness/kernel/routing.h"

namespace moegate::test {
namespace {

TEST(RoutingShared, IsOneExpertForAllAndARoutingOfTheOthers) {
  const RoutingShape shape{300, 257, 9}, others{300, 256, 8};
  for (const std::string spec : {"uniform", "zipf:0.67", "hot:4:0.5", "balanced"}) {
    const auto ids = routed_experts("shared:" + spec, shape, 1);
    const auto rest = routed_experts(spec, others, 1);
    for (std::ptrdiff_t t = 0; t < 300; ++t) {
      const auto of_token = ids.begin() + 9 * t;
      ASSERT_EQ(*of_token, 256) << spec;
      ASSERT_TRUE(std::equal(of_token + 1, of_token + 9, rest.begin() + 8 * t)) << spec << " " << t;
    }
  }
}

std::string refusal(const std::string& spec, int topk) {
  return refusal_of([&] { routing_scores(spec, {8, 64, topk}, 1); });
}

TEST(RoutingShared, RefusesWhatTheOthersCannotBe) {
  using ::testing::IsSubstring;
  EXPECT_PRED_FORMAT2(IsSubstring, "routing '': it is no routing", refusal("shared:", 4));
  EXPECT_PRED_FORMAT2(IsSubstring, "'zipf:11': '11' is not", refusal("shared:zipf:11", 4));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk = 1 leaves no slot", refusal("shared:uniform", 1));
}

}  // namespace
}  // namespace moegate::test
