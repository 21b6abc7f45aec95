// SPDX-License-Identifier: Apache-2.0
#include "harness/store/prune.h"

#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

class PruneTest : public StoreFixture {
 protected:
  /// A run of one row with a thousand samples, which started so many days ago.
  int64_t add_run(int days_ago, const std::string& status = "complete") {
    Store store = Store::open(path_, Store::Mode::write);
    const int64_t run = store.begin_run(host_run());
    const int64_t process = store.begin_process(run, 0, 1);
    Result result;
    result.variant = "fused";
    result.timer = "clock";
    result.samples = 1000;
    result.span_ns = result.min_ns = 5000;
    result.spans_ns.assign(1000, 5000.5F);  // no whole numbers: they are not packed
    result.kernels.resize(1);
    result.metrics = {{"enqueue", "ns", 1}};
    store.add_result(process, {"smoke", "", "topk_sort", {{"tokens", "8"}}, {}}, {1, 2, 3}, {},
                     result);
    store.end_process(process, "");
    if (status != "running") store.end_run(run, status);
    store.database().execute(
        fmt::format("UPDATE run SET started = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-{} days') "
                    "WHERE run_id = {}",
                    days_ago, run));
    return run;
  }

  static void fail(Store& store, int64_t run) {
    store.database().execute(fmt::format(
        "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, family, "
        "waiver, why) VALUES ({}, 'a baseline', 'smoke', 'topk_sort/tokens=8', 'fused', "
        "'regressed', 1, 0, 1, '', 'slower')",
        run));
  }

  static int64_t samples_of(Store& store, int64_t run) {
    return store.database().integer(
        fmt::format("SELECT count(*) FROM sample JOIN result USING (result_id) JOIN process USING "
                    "(process_id) WHERE run_id = {}",
                    run));
  }
};

TEST_F(PruneTest, OldRunsLoseTheirSamplesAndNothingElse) {
  const int64_t old = add_run(31), young = add_run(29);
  Store store = Store::open(path_, Store::Mode::update);
  const Pruned pruned = prune(store, {30});
  EXPECT_EQ(pruned.runs, 1);
  EXPECT_EQ(pruned.whole, 0);
  EXPECT_EQ(samples_of(store, old), 0);
  EXPECT_EQ(samples_of(store, young), 1);
  const std::vector<Level> levels = store.levels(old);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0].result.span_ns, 5000);
  EXPECT_EQ(levels[0].result.metrics.size(), 1u);
  EXPECT_EQ(store.levels(old, /*launches=*/true)[0].result.kernels.size(), 1u);
  EXPECT_EQ(prune(store, {30}).runs, 0) << "once more";
}

TEST_F(PruneTest, RunsThatAGateFailedAndThoseUnderWayKeepThem) {
  const int64_t failed = add_run(100), running = add_run(100, "running");
  Store store = Store::open(path_, Store::Mode::update);
  fail(store, failed);
  const Pruned pruned = prune(store, {0, 0});
  EXPECT_EQ(pruned.runs, 0);
  EXPECT_EQ(pruned.whole, 1);
  EXPECT_EQ(samples_of(store, failed), 1);
  EXPECT_EQ(samples_of(store, running), 1);
}

TEST_F(PruneTest, ABlessedRunStaysWhole) {
  const int64_t blessed = add_run(100), other = add_run(100);
  Store store = Store::open(path_, Store::Mode::update);
  mark_blessed(store, blessed);
  mark_blessed(store, blessed);
  EXPECT_EQ(prune(store, {10}).whole, 1);
  EXPECT_EQ(samples_of(store, blessed), 1);
  EXPECT_EQ(samples_of(store, other), 0);
}

TEST_F(PruneTest, OlderRunsKeepTheirLevelsOnly) {
  const int64_t older = add_run(100), old = add_run(50);
  Store store = Store::open(path_, Store::Mode::update);
  EXPECT_EQ(prune(store, {10, 90}).runs, 2);
  EXPECT_EQ(samples_of(store, older) + samples_of(store, old), 0);
  const Result thin = store.levels(older, /*launches=*/true)[0].result;
  EXPECT_EQ(thin.kernels.size() + thin.metrics.size(), 0u);
  EXPECT_EQ(thin.span_ns, 5000);
  EXPECT_EQ(store.levels(old, /*launches=*/true)[0].result.kernels.size(), 1u);
  EXPECT_EQ(prune(store, {10, 40}).runs, 1) << "the old one is older by now";
  EXPECT_EQ(store.levels(old, /*launches=*/true)[0].result.kernels.size(), 0u);
}

TEST_F(PruneTest, TheFileBecomesSmaller) {
  for (int i = 0; i < 40; ++i) add_run(40);
  Store store = Store::open(path_, Store::Mode::update);
  const auto bytes = [&] { return store.database().integer("SELECT sum(bytes) FROM process"); };
  const int64_t whole = bytes();
  EXPECT_GT(whole, 40 * 4000);
  const Pruned pruned = prune(store, {30});
  EXPECT_GT(pruned.bytes, 40 * 3000);
  EXPECT_NEAR(bytes(), whole - pruned.bytes, 4 * 4096) << "what a list of runs says of them";
  const Sizes sizes = compact(store);
  EXPECT_LT(sizes.after, sizes.before - 40 * 3000);
  EXPECT_EQ(store.find_run("latest"), 40);
}

}  // namespace
}  // namespace moegate::test
