// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/rng.h"

namespace moegate {
namespace {

using Histories = std::set<std::pair<size_t, int>>;

/// Rows of so many runs in one place, with noise of 0.3 %, that step up in the middle.
class SiteStepsTest : public testing::Test {
 protected:
  void add_row(int runs, double step) {
    while (data_.runs.size() < static_cast<size_t>(runs)) data_.runs.emplace_back();
    SiteRow& row = data_.rows.emplace_back();
    for (int i = 0; i < runs; ++i) {
      const auto bits = random_bits(1, data_.rows.size(), static_cast<uint64_t>(i));
      SitePoint point;
      point.run = static_cast<uint32_t>(i);
      point.level = true;
      point.mean_log = static_cast<float>(0.003 * (static_cast<double>(bits % 1000) / 500 - 1) +
                                          (i < runs / 2 ? 0 : step));
      row.points.push_back(point);
    }
  }
  Points points(size_t row) const { return histories_of(data_, data_.rows[row]).at(0); }

  SiteData data_;
};

TEST_F(SiteStepsTest, AreFoundAmongTheNewestPoints) {
  add_row(40, 0.05);
  add_row(200, 0.05);
  const auto steps = steps_of(points(0));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps.begin()->first, 20u);
  EXPECT_NEAR(steps.begin()->second, std::expm1(0.05), 0.003);
  EXPECT_TRUE(steps_of(points(1)).empty()) << "it was 100 runs ago";
}

TEST_F(SiteStepsTest, AreLookedForWhereTheyAreClearestWithinTheWork) {
  for (const double step : {0.03, 0.0, 0.2, 0.1}) add_row(20, step);
  add_row(10, 0.08);
  const auto searched = [&](size_t work) { return plan_search(data_, work).searched; };
  EXPECT_EQ(searched(4 * 400), (Histories{{0, 0}, {2, 0}, {3, 0}, {4, 0}})) << "row 1 has no step";
  EXPECT_EQ(searched(2 * 400), (Histories{{2, 0}, {3, 0}}));
  EXPECT_EQ(searched(2 * 400 + 100), (Histories{{2, 0}, {3, 0}, {4, 0}}))
      << "half the points, a quarter of the work";
  EXPECT_TRUE(searched(399).empty());
}

TEST_F(SiteStepsTest, AreLeftOutOnlyWhereThereMayBeSome) {
  for (const double step : {0.03, 0.0, 0.2}) add_row(20, step);
  EXPECT_TRUE(plan_search(data_, 2 * 400).left_out.empty());
  EXPECT_EQ(plan_search(data_, 400).left_out, (Histories{{0, 0}}));
  EXPECT_EQ(plan_search(data_, 0).left_out, (Histories{{0, 0}, {2, 0}}));
}

TEST_F(SiteStepsTest, ALevelThatNeverMovesHasNone) {
  add_row(20, 0);
  for (SitePoint& p : data_.rows[0].points) p.mean_log = 1.25;
  EXPECT_TRUE(plan_search(data_).searched.empty());
  for (size_t i = 10; i < 20; ++i) data_.rows[0].points[i].mean_log = 2.5;
  EXPECT_EQ(plan_search(data_).searched, (Histories{{0, 0}}))
      << "without noise there is nothing clearer";
}

TEST_F(SiteStepsTest, RunsThatDoNotCompareAreHistoriesOfTheirOwn) {
  add_row(40, 0.05);
  for (size_t i = 20; i < 40; ++i) data_.runs[i].conditions = 1;
  EXPECT_EQ(histories_of(data_, data_.rows[0]).size(), 2u);
  EXPECT_TRUE(plan_search(data_).searched.empty()) << "the step is another device's";
}

}  // namespace
}  // namespace moegate
