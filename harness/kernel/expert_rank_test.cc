// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/expert_rank.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"
#include "harness/kernel/routing.h"

namespace moegate {
namespace {

Case case_of(const std::string& rank, const std::string& experts = "8") {
  Case c;
  c.suite = "test";
  c.section = "ranks";
  c.params = {{"experts", experts}, {"rank", rank}, {"topk", "8"}, {"tokens", "100"}};
  return c;
}

TEST(ExpertRank, WhatIsNoRankIsRefused) {
  for (const char* bad : {"", "1", "1/", "/2", "2/2", "-1/2", "0/0", "busiest", "busiest/1",
                          "busiest/", "largest/2", "0/2/2"}) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "use r/N with r from 0 to N - 1",
                        test::refusal_of([&] { ExpertRank::of(case_of(bad)); }))
        << bad;
  }
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "rank = 1/3: experts = 8 does not split over 3 ranks; ranks that work: 1, 2, "
                      "4, 8",
                      test::refusal_of([] { ExpertRank::of(case_of("1/3")); }));
}

TEST(ExpertRank, ACaseWithoutARankHasAllExperts) {
  Case c = case_of("0/1");
  c.params.erase("rank");
  for (const Case& whole : {c, case_of("0/1")}) {
    const ExpertRank rank = ExpertRank::of(whole);
    EXPECT_TRUE(rank.is_whole());
    EXPECT_EQ(rank.local(), 8);
    EXPECT_EQ(rank.own({7, 9, -3}), (std::vector<int32_t>{7, 9, -3}));
    EXPECT_EQ(even_share(whole).params, whole.params);
  }
}

TEST(ExpertRank, OwnIdsCountFromZero) {
  const ExpertRank rank = ExpertRank::of(case_of("1/4"));
  EXPECT_EQ(rank.own({1, 2, 3, 4, -1, 2147483647}), (std::vector<int32_t>{-1, 0, 1, -1, -1, -1}));
  EXPECT_EQ(rows_of_rank({-1, 0, 1, -1}), (std::vector<int32_t>{1, 2}));
}

TEST(ExpertRank, EveryRoutedRowIsOfOneRank) {
  for (const char* routing : {"uniform", "zipf:0.67", "hot:2:1"}) {
    const auto ids = routed_experts(routing, {50, 8, 3}, 1);
    std::vector<int32_t> together(ids.size(), -1);
    for (const char* one : {"0/4", "1/4", "2/4", "3/4"}) {
      const ExpertRank rank = ExpertRank::of(case_of(one));
      const auto own = rank.own(ids);
      for (const int32_t row : rows_of_rank(own)) {
        EXPECT_EQ(together[static_cast<size_t>(row)], -1) << "a row of two ranks";
        together[static_cast<size_t>(row)] = own[static_cast<size_t>(row)] + rank.first();
      }
    }
    EXPECT_EQ(together, ids);
  }
}

TEST(ExpertRank, TheBusiestIsThatOfMostRows) {
  ExpertRank rank = ExpertRank::of(case_of("busiest/4"));
  rank.find({0, 1, 4, 5, 5, 7, -1, 99});
  EXPECT_EQ(rank.rank, 2);
  rank.find({0, 0});
  EXPECT_EQ(rank.rank, 2) << "of the routing that the case began with";
  ExpertRank equal = ExpertRank::of(case_of("busiest/4"));
  equal.find({6, 2});
  EXPECT_EQ(equal.rank, 1);
  EXPECT_EQ(with_one_rank(case_of("busiest/4")).get("rank"), "0/4");
  EXPECT_EQ(with_one_rank(case_of("3/4")).get("rank"), "3/4");
}

TEST(ExpertRank, AnEvenShareHasTheRowsOfARank) {
  const auto share = [](const char* rank) {
    const Case c = even_share(case_of(rank, "16"));
    return c.get("experts") + " " + c.get("topk") + " " + c.get("tokens") + " " + c.get("rank");
  };
  EXPECT_EQ(share("1/2"), "8 4 100 0/1");
  EXPECT_EQ(share("busiest/8"), "2 1 100 0/1");
  EXPECT_EQ(share("15/16"), "1 1 50 0/1");
}

}  // namespace
}  // namespace moegate
