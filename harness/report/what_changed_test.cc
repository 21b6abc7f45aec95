// SPDX-License-Identifier: Apache-2.0
#include "harness/report/what_changed.h"

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

class WhatChangedTest : public GateTest {
 protected:
  /// A run of one commit; `us` is what fused takes.
  int64_t add(const std::string& commit, double us, const std::string& code,
              const std::function<bool(Row&)>& more = {}) {
    info_.git_sha = commit;
    return add_run([&](Row& row, int) {
      if (row.variant == "fused") row.result.span_ns *= us / 10;
      row.result.code = row.variant == "fused" ? code : "chain's";
      return !more || more(row);
    });
  }
  WhatChanged changed(int64_t base, int64_t head) {
    Store store = Store::open(db_, Store::Mode::read);
    return what_changed(store, base, head, Limits::cuda());
  }
};

TEST_F(WhatChangedTest, RowsOfOneVariantAreOneGroupBetweenItsCommits) {
  const int64_t first = add("c1", 10, "old");
  add("c2", 10, "old");
  add("c3", 12, "new");
  const int64_t last = add("c4", 12, "new");
  const WhatChanged all = changed(first, last);
  EXPECT_EQ(all.rows, 4u);
  ASSERT_EQ(all.groups.size(), 1u);
  const ChangeGroup& group = all.groups[0];
  EXPECT_EQ(group.kind, ChangeKind::slower);
  EXPECT_EQ(group.variant, "fused");
  EXPECT_EQ(group.rows.size(), 2u);
  EXPECT_NEAR(group.change, 0.2, 0.001);
  EXPECT_EQ(group.before.git_sha, "c2");
  EXPECT_EQ(group.after.git_sha, "c3");
  EXPECT_EQ(group.code, "changed");
  EXPECT_EQ(group.trend.size(), 4u);

  EXPECT_EQ(call(cmd_report, {"changes", "--against", "1"}), 0) << out_;
  EXPECT_TRUE(says("**2 slower** of 4 rows, 0 inconclusive, from run 1 'night'")) << out_;
  EXPECT_TRUE(says("| slower | +20.0 % |    2 | topk_sort | fused ")) << out_;
  EXPECT_TRUE(says("c2..c3")) << out_;
  EXPECT_EQ(call(cmd_report, {"changes", "--against", "1", "--format", "csv"}), 0);
  EXPECT_TRUE(says("slower,nightly,topk_sort/tokens=8,fused,0.2000,2,3,c2,c3,changed,")) << out_;
}

TEST_F(WhatChangedTest, BadNewsComesFirst) {
  const int64_t first = add("c1", 12, "old");
  const int64_t last = add("c2", 10, "new", [](Row& row) {
    if (row.variant == "chain" && row.tokens == "8") row.result.status = Status::wrong;
    return row.variant != "chain" || row.tokens != "16";
  });
  const WhatChanged all = changed(first, last);
  ASSERT_EQ(all.groups.size(), 3u);
  EXPECT_EQ(all.groups[0].kind, ChangeKind::wrong);
  EXPECT_EQ(all.groups[1].kind, ChangeKind::lost);
  EXPECT_EQ(all.groups[2].kind, ChangeKind::faster);
}

TEST_F(WhatChangedTest, WhatFailedBeforeIsNoChange) {
  const auto crashes = [](Row& row) {
    if (row.variant == "chain") row.result.status = Status::crashed;
    return true;
  };
  const int64_t first = add("c1", 10, "old", crashes);
  EXPECT_TRUE(changed(first, add("c2", 10, "old", crashes)).groups.empty());
  EXPECT_EQ(changed(add("c3", 10, "old"), add("c4", 10, "old", crashes)).groups.size(), 1u);
}

TEST_F(WhatChangedTest, NothingChangedIsSaid) {
  add("c1", 10, "old");
  add("c2", 10, "old");
  EXPECT_EQ(call(cmd_report, {"changes"}), 0) << out_;
  EXPECT_TRUE(says("**Nothing changed** of 4 rows")) << out_;
}

// A file of Python that holds the yardstick too: each edit makes the yardstick other code.
TEST_F(WhatChangedTest, WhatMovedBesideAnotherYardstickIsSaidAsNotCertain) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  const auto night = [&](const std::string& commit, double time, double ratio) {
    info_.git_sha = commit;
    return add_run([&](Row& row, int) {
      row.result.yardstick_code = row.result.code = commit;
      if (row.variant == "fused") row.result.span_ns *= time, row.result.ratio *= ratio;
      return true;
    });
  };
  const int64_t first = night("c1", 1, 1);
  const WhatChanged slower = changed(first, night("c2", 2, 1.8));
  ASSERT_EQ(slower.groups.size(), 1u);
  EXPECT_EQ(slower.groups[0].kind, ChangeKind::perhaps_slower);
  EXPECT_EQ(slower.groups[0].variant, "fused");
  EXPECT_NEAR(slower.groups[0].change, 0.8, 0.001);
  EXPECT_EQ(slower.groups[0].after.git_sha, "c2");
  EXPECT_EQ(call(cmd_report, {"changes", "--against", "1"}), 0) << out_;
  EXPECT_TRUE(says("**2 perhaps slower** of 4 rows, 4 inconclusive")) << out_;
  EXPECT_TRUE(says("about 80 % slower, not certain: judged by its own time")) << out_;

  EXPECT_EQ(changed(first, night("c3", 0.5, 0.5)).groups[0].kind, ChangeKind::perhaps_faster);
  EXPECT_TRUE(changed(first, night("c4", 2, 1)).groups.empty()) << "a busy machine";
  EXPECT_TRUE(changed(first, night("c5", 1, 2)).groups.empty()) << "the yardstick is faster";
}

TEST_F(WhatChangedTest, OneRunHasNothingToCompareWith) {
  add("c1", 10, "old");
  EXPECT_EQ(call(cmd_report, {"changes"}), 13) << out_;
}

TEST_F(WhatChangedTest, RunsOfOtherSuitesAndSidesOfAnAbAreNoNights) {
  add("c1", 10, "old");
  info_.tags["ab"] = "x";
  add("c2", 10, "old");
  info_.tags.clear();
  const int64_t last = add("c3", 10, "old");
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(comparable_runs(store, last, ""), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(comparable_runs(store, last, "2999-01-01"), std::vector<int64_t>{3});
}

TEST_F(WhatChangedTest, ARunOfSomeRowsIsNoNight) {
  const int64_t first = add("c1", 10, "old"), second = add("c2", 10, "old");
  info_.options = R"({"filter": "tokens=8$"})";
  const int64_t some = add("c3", 10, "old", [](const Row& row) { return row.tokens == "8"; });
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(comparable_runs(store, second, ""), (std::vector{first, second}));
  EXPECT_EQ(comparable_runs(store, some, ""), std::vector{some});
  EXPECT_EQ(last_comparable_run(store), second);
}

TEST_F(WhatChangedTest, TwoRunsThatAreNoNightsAreCompared) {
  info_.tags["ab"] = "x";
  const int64_t first = add("c1", 10, "old");
  const int64_t last = add("c2", 12, "new");
  const WhatChanged all = changed(first, last);
  ASSERT_EQ(all.groups.size(), 1u);
  EXPECT_EQ(all.groups[0].before.id, first);
  EXPECT_EQ(all.groups[0].after.id, last);
  EXPECT_EQ(all.runs, 2u);
}

TEST(WebAddress, IsWhatABrowserOpens) {
  EXPECT_EQ(web_address("git@github.com:o/r.git"), "https://github.com/o/r");
  EXPECT_EQ(web_address("ssh://git@example.org/o/r"), "https://example.org/o/r");
  EXPECT_EQ(web_address("https://github.com/o/r.git"), "https://github.com/o/r");
  EXPECT_EQ(web_address("/srv/git/r.git"), "");
}

}  // namespace
}  // namespace moegate::test
