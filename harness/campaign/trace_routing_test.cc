// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "harness/base/scratch_fixture.h"

namespace moegate {
namespace {

using Ids = std::vector<int64_t>;

TEST(TraceRouting, TheLargestLogitsAreChosenAndTiesGoToTheLowerExpert) {
  const RouterRule rule{.experts = 4, .topk = 2};
  const IntTable ids = chosen_experts(rule, {0, 3, 1, 2, 5, 5, 5, 5, NAN, -INFINITY, -1, NAN}, {});
  EXPECT_EQ(ids.rows, 3);
  EXPECT_EQ(ids.columns, 2);
  EXPECT_EQ(ids.values, (Ids{1, 3, 0, 1, 2, 0}));
}

TEST(TraceRouting, TheBiasDecidesWithTheSigmoid) {
  const RouterRule rule{.experts = 3, .topk = 1, .sigmoid = true};
  EXPECT_EQ(chosen_experts(rule, {0.2, 0.1, 0}, {}).values, (Ids{0}));
  EXPECT_EQ(chosen_experts(rule, {0.2, 0.1, 0}, {0, 0, 0.1}).values, (Ids{2}));
  // Far out on the sigmoid a logit is worth less than the bias.
  EXPECT_EQ(chosen_experts(rule, {9, 8, 0}, {0, 0.01, 0}).values, (Ids{1}));
}

TEST(TraceRouting, OnlyTheGroupsWithTheBestPairsAreChosenFrom) {
  RouterRule rule{.experts = 6, .topk = 2, .sigmoid = true, .groups = 3, .topk_groups = 1};
  const std::vector<double> logits = {4, -9, 1, 1, 0, 0};  // the best expert is alone in its group
  EXPECT_EQ(chosen_experts(rule, logits, {}).values, (Ids{2, 3}));
  rule.topk_groups = 2;
  EXPECT_EQ(chosen_experts(rule, logits, {}).values, (Ids{2, 3}));
  rule.topk_groups = 3;
  EXPECT_EQ(chosen_experts(rule, logits, {}).values, (Ids{0, 2}));
}

TEST(TraceRouting, ARankHasARowForEachChoiceOfItsExperts) {
  const IntTable ids{3, 2, {0, 5, 4, 7, 1, 2}};
  const IntTable rows = rows_of_rank(ids, 4, 4);
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.columns, 1);
  EXPECT_EQ(rows.values, (Ids{1, 0, 3}));
  EXPECT_EQ(rows_of_rank(ids, 8, 4).rows, 0);
}

TEST(TraceRouting, AnIdThatIsNoExpertOrTwiceInARowIsNamed) {
  EXPECT_EQ(fault_of_routing({2, 2, {0, 1, 1, 0}}, 2), "");
  EXPECT_EQ(fault_of_routing({1, 2, {0, 2}}, 2), "row 0: id 2 is not in [0, 2)");
  EXPECT_EQ(fault_of_routing({1, 2, {-1, 0}}, 2), "row 0: id -1 is not in [0, 2)");
  EXPECT_EQ(fault_of_routing({2, 2, {0, 1, 1, 1}}, 2), "row 1: id 1 appears twice");
}

TEST(TraceRouting, WhatIsWrittenIsWhatReplayReads) {
  const ScratchFolder folder;
  const std::string path = (folder / "ids.npy").string();
  for (const IntTable& table : {IntTable{2, 3, {0, 1, 70000, 3, 4, 5}}, IntTable{0, 1, {}},
                                IntTable{100, 1, Ids(100, 7)}}) {
    std::ofstream(path, std::ios::binary) << npy_bytes(table);
    const IntTable read = read_npy(path);
    EXPECT_EQ(read.rows, table.rows);
    EXPECT_EQ(read.columns, table.columns);
    EXPECT_EQ(read.values, table.values);
  }
}

}  // namespace
}  // namespace moegate
