// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_levels.h"

#include "harness/store/store_fixture.h"

namespace moegate {
namespace {

using RowLevelsTest = StoreFixture;

TEST_F(RowLevelsTest, WhatWasWrittenComesBackOrdered) {
  write_run(path_);
  Store store = Store::open(path_, Store::Mode::update);
  const auto ignore = [](const RowLevel&) { FAIL() << "nobody wrote one"; };
  EXPECT_FALSE(read_row_levels(store, 1, ignore));
  const RowLevel row{.key = "topk_sort/tokens=8",
                     .variant = "chain",
                     .status = Status::noisy,
                     .judged = Judged::ratio,
                     .processes = 4,
                     .mean_log = -0.25,
                     .sd_log = 0.5,
                     .comparable = true,
                     .code = "c0de"};
  RowLevel other = row, unknown = row;
  other.variant = "a";
  unknown.key = "topk_sort/tokens=9";
  write_row_levels(store, 1, {row});
  write_row_levels(store, 1, {row, other, unknown});  // replaces them
  std::vector<RowLevel> back;
  EXPECT_TRUE(read_row_levels(store, 1, [&](const RowLevel& r) { back.push_back(r); }));
  ASSERT_EQ(back.size(), 2u) << "the store has no such case";
  EXPECT_EQ(back[0].variant, "a");
  EXPECT_EQ(back[1].case_id, 1);
  EXPECT_EQ(back[1].status, row.status);
  EXPECT_EQ(back[1].judged, row.judged);
  EXPECT_EQ(back[1].processes, row.processes);
  EXPECT_EQ(back[1].mean_log, row.mean_log);
  EXPECT_EQ(back[1].sd_log, row.sd_log);
  EXPECT_TRUE(back[1].comparable);
  EXPECT_EQ(back[1].code, row.code);
  store.database().execute("DELETE FROM run");
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM row_level"), 0);
}

}  // namespace
}  // namespace moegate
