// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/redraw.h"

#include <gtest/gtest.h>

#include <set>

namespace moegate::test {
namespace {

using Rows = std::vector<int>;

/// Rows of two: what a seed draws, and which row it is.
DrawnRows<int> drawn(int64_t rows, int& draws) {
  return {rows, 7, [rows, &draws](uint64_t seed) {
            ++draws;
            Rows all;
            for (int row = 0; row < rows; ++row) {
              all.push_back(static_cast<int>(seed % 1000003));
              all.push_back(row);
            }
            return all;
          }};
}

TEST(DrawnRows, FewAreDrawnAnewForEveryChange) {
  int draws = 0;
  DrawnRows<int> rows = drawn(1, draws);
  EXPECT_EQ(rows.of(0), rows.first());
  std::set<Rows> seen = {rows.first()};
  for (uint64_t change = 1; change <= 20; ++change) {
    EXPECT_TRUE(seen.insert(rows.of(change)).second) << change;
    EXPECT_EQ(rows.of(change), rows.of(change)) << "the same for the same change";
  }
  EXPECT_EQ(rows.of(0), rows.first());
}

TEST(DrawnRows, ManyAreDrawnOnceMoreAndRotated) {
  int draws = 0;
  DrawnRows<int> rows = drawn(1000, draws);
  std::set<Rows> seen = {rows.first()};
  for (uint64_t change = 1; change <= 20; ++change) {
    const Rows others = rows.of(change);
    EXPECT_NE(others[0], rows.first()[0]) << "of another seed";
    EXPECT_EQ(others.size(), 2000u);
    std::set<int> which;
    for (size_t i = 1; i < others.size(); i += 2) which.insert(others[i]);
    EXPECT_EQ(which.size(), 1000u) << "every row once, whole";
    seen.insert(others);
  }
  EXPECT_GT(seen.size(), 15u) << "others for other changes";
  EXPECT_EQ(draws, 2);
  EXPECT_EQ(rows.of(0), rows.first());
}

TEST(DrawnRows, WhatNoSeedChangesIsRotated) {
  DrawnRows<int> recorded(3, 7, [](uint64_t) { return Rows{1, 2, 3}; });
  EXPECT_NE(recorded.of(5), recorded.first());
  DrawnRows<int> alone(1, 7, [](uint64_t) { return Rows{1}; });
  EXPECT_EQ(alone.of(5), alone.first()) << "there is no other";
}

TEST(ByChange, WhatWasFoundComesBack) {
  ByChange<Rows> kept;
  Rows truth = {1};
  kept.turn(9, truth);
  EXPECT_TRUE(truth.empty()) << "nobody found it yet";
  truth = {2};
  kept.turn(4, truth);
  kept.turn(0, truth);
  EXPECT_EQ(truth, Rows{1});
  kept.turn(0, truth);
  EXPECT_EQ(truth, Rows{1});
  kept.turn(9, truth);
  EXPECT_EQ(truth, Rows{2});
  kept.turn(4, truth);
  EXPECT_TRUE(truth.empty());
}

}  // namespace
}  // namespace moegate::test
