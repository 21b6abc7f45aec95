// SPDX-License-Identifier: Apache-2.0
#include "harness/store/level_walk.h"

#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

using ResultWalkTest = StoreFixture;

Case case_of(int tokens) {
  return {"tiny", "gpt", "topk_sort", {{"tokens", std::to_string(tokens)}}, {}};
}

/// Two cases with two variants in three rounds, in another order in each.
int64_t write_shuffled_run(Store& store) {
  const int64_t run = store.begin_run(host_run());
  for (const int round : {1, 0, 2}) {
    const int64_t process = store.begin_process(run, round, 1);
    for (const char* variant : {"b", "a"}) {
      for (const int tokens : {round == 1 ? 8 : 7, round == 1 ? 7 : 8}) {
        Result result = whole_result();
        result.variant = variant;
        result.span_ns += round;
        result.metrics = {{"enqueue", "ns", 500.0 + round}, {"problem_sets", "sets", 4}};
        if (round == 2) result.accuracy.clear(), result.seeds.clear();
        store.add_result(process, case_of(tokens), {}, {}, result);
      }
    }
  }
  return run;
}

TEST_F(ResultWalkTest, ResultsComeRowByRowWhateverTheirOrderWas) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = write_shuffled_run(store);
  std::vector<std::string> rows;
  store.each_level(run)([&](const Level& l) {
    rows.push_back(fmt::format("{} {} {}", l.key.substr(l.key.size() - 1), l.variant, l.round));
    EXPECT_EQ(l.suite, "tiny");
    EXPECT_EQ(l.result.span_ns, whole_result().span_ns + l.round);
    EXPECT_EQ(l.result.accuracy.size(), l.round == 2 ? 0u : 1u) << "nothing of the one before";
    EXPECT_EQ(l.result.seeds.size(), l.round == 2 ? 0u : 2u);
    ASSERT_EQ(l.result.metrics.size(), 1u) << "what a verdict reads";
    EXPECT_EQ(l.result.metrics[0].name, kEnqueueMetric);
    EXPECT_EQ(l.result.metrics[0].value, 500.0 + l.round);
  });
  // By number of the case: round 1 came first, and in it 8.
  EXPECT_EQ(rows, (std::vector<std::string>{"8 a 0", "8 a 1", "8 a 2", "8 b 0", "8 b 1", "8 b 2",
                                            "7 a 0", "7 a 1", "7 a 2", "7 b 0", "7 b 1", "7 b 2"}));
}

TEST_F(ResultWalkTest, OfCasesThatAreNotAskedAboutNothingIsRead) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(host_run());
  for (const int round : {0, 1}) {
    const int64_t process = store.begin_process(run, round, 1);
    for (const int tokens : {1, 2, 3, 4, 5, 6}) {
      store.add_result(process, case_of(tokens), {}, {}, whole_result());
    }
  }
  store.database().execute("UPDATE result SET median_ns = -1 WHERE case_id IN (2, 5)");
  const auto walked = [&](const std::string& tokens) {
    std::string rows;
    const auto chosen = [&](const std::string& key) { return tokens.find(key.back()) < 9; };
    walk_levels(store.database(), {.run = run, .cases = chosen}, [&](const WalkedLevel& one) {
      rows += fmt::format("{}.{} ", one.level.key.back(), one.level.round);
      EXPECT_EQ(one.place, static_cast<size_t>(one.level.key.back() - '1'));
    });
    return rows;
  };
  EXPECT_EQ(walked("1346"), "1.0 1.1 3.0 3.1 4.0 4.1 6.0 6.1 ");
  EXPECT_EQ(walked("4"), "4.0 4.1 ");
  EXPECT_EQ(walked(""), "");
  EXPECT_THROW(walked("45"), Error) << "the number that cannot be is read where it was asked for";
}

TEST_F(ResultWalkTest, AVerdictsLevelsHaveAllButWhatNoVerdictReads) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = write_shuffled_run(store);
  for (const std::string_view column : kUnjudged)
    store.database().execute(fmt::format("UPDATE result SET {} = 3", column));
  const Result whole = store.levels(run).at(6).result, nothing;  // of case 8, which came first
  Result judged;
  bool first = true;
  store.each_level(run)([&](const Level& l) {
    if (std::exchange(first, false)) judged = l.result;
  });
  size_t left_out = 0;
  for_each_field(kFields<Result>, [&](const auto& f) {
    const bool is_out = is_left_out(kUnjudged, f.column);
    left_out += is_out;
    EXPECT_EQ(f.of(judged), is_out ? f.of(nothing) : f.of(whole)) << f.column;
    if (is_out) {
      EXPECT_NE(f.of(whole), f.of(nothing)) << f.column;
    }
  });
  EXPECT_EQ(left_out, kUnjudged.size()) << "each is a column of results";
}

TEST_F(ResultWalkTest, LevelsAreOrderedByKeyAndHaveEveryMetric) {
  Store store = Store::open(path_, Store::Mode::write);
  const auto levels = store.levels(write_shuffled_run(store));
  ASSERT_EQ(levels.size(), 12u);
  for (size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ(levels[i].key, case_of(i < 6 ? 7 : 8).key());
    EXPECT_EQ(levels[i].variant, i / 3 % 2 == 0 ? "a" : "b");
    EXPECT_EQ(levels[i].round, static_cast<int>(i % 3));
    EXPECT_EQ(levels[i].result.metrics.size(), 2u);
  }
}

TEST_F(ResultWalkTest, ARunOfNothingHasNoLevels) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(host_run());
  store.begin_process(run, 0, 1);
  store.each_level(run)([](const Level&) { FAIL(); });
}

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
}  // namespace moegate::test
