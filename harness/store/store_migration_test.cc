// SPDX-License-Identifier: Apache-2.0
// A store of an older version after its migration.
#include <filesystem>
#include <map>
#include <set>

#include "harness/store/query_report.h"
#include "harness/store/store_fixture.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

using StoreMigrationTest = StoreFixture;

TEST_F(StoreMigrationTest, AMigrationKeepsWhatThereIs) {
  for (int version = 1; version < static_cast<int>(kMigrations.size()); ++version) {
    SCOPED_TRACE("from version " + std::to_string(version));
    fs::remove(path_);
    write_old_store(path_, version);
    Store store = Store::open(path_, Store::Mode::update);
    Database& db = store.database();
    EXPECT_EQ(db.integer("PRAGMA user_version"), kMigrations.size());
    expect_whole(store);
    EXPECT_EQ(store.run_info(1).label, "old");
    const auto levels = store.levels(1);
    ASSERT_EQ(levels.size(), 1u);
    EXPECT_EQ(levels[0].key, "topk_sort tokens=8");
    EXPECT_EQ(levels[0].result.span_ns, 5000);
    EXPECT_EQ(levels[0].result.accuracy.at(0).rel_l2, 1e-6);
    EXPECT_EQ(db.integer("SELECT count(*) FROM verdict WHERE suite = 'tiny' AND why = 'same' AND"
                         " key = 'topk_sort tokens=8' AND outcome = 'pass' AND mde = 0.01"),
              1);
    EXPECT_GT(db.integer("SELECT count(*) FROM sqlite_stat1"), 0) << "has statistics";
    EXPECT_EQ(db.integer("SELECT results FROM process"), 1);
    EXPECT_EQ(db.integer("SELECT wall_s = 1 FROM process"), 1);
    const auto kernels = store.levels_with_launches(1).at(0).result.kernels;
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[1].name, "b");
    add_sql_functions(db);
    EXPECT_EQ(db.integer("SELECT span_quantile(spans, 0.5) FROM sample"), 5000);
  }
}

/// Adds to what write_old_store() made: a run on a GPU, and rows of every kind.
void add_old_rows(const std::string& path) {
  Database db(path, SQLITE_OPEN_READWRITE);
  db.execute(
      "INSERT INTO device VALUES (2, 'cuda', 'H200', 'h200', 'GPU-1', '', 2, 1, 1, 1);"
      "INSERT INTO run (run_id, label, started, status, device_id, protocol, timer, flush, rounds,"
      " git_sha, dirty, build, host, command, options)"
      " SELECT 2, 'gpu', started, status, 2, protocol, 'cupti', 'read', rounds, git_sha, dirty,"
      " build, host, command, options FROM run;"
      "INSERT INTO process (process_id, run_id, round, pid, started) "
      "VALUES (2, 2, 0, 4712, '2026-01-01T00:00:00Z');"
      "INSERT INTO bench_case VALUES (2, 'qmoe_fc2 tokens=1', 'qmoe_fc2', '{}', 1, 2, 3),"
      " (3, 'mine tokens=1', 'mine', '{}', 1, 2, 3);"
      "INSERT INTO run_case SELECT 2, case_id, 'tiny', 'gpt', '{}' FROM bench_case");
  const auto add = [&](int process, const char* variant, const char* timer, const char* ratio) {
    db.execute(
        std::string("INSERT INTO result (process_id, case_id, variant, status, why, path,"
                    " deterministic, timer, tick_ns, samples, invalid, flags, span_ns, median_ns,"
                    " low_ns, high_ns, min_ns, busy_ns, sum_ns, ratio, ratio_low, ratio_high,"
                    " sm_mhz, impossible, suspect_warm, wall_s) SELECT ") +
        std::to_string(process) + ", case_id, '" + variant +
        "', status, why, path, deterministic, '" + timer +
        "', tick_ns, samples, invalid, flags, span_ns, median_ns, low_ns, high_ns, min_ns, busy_ns,"
        " sum_ns, " +
        ratio +
        ", 0.9, 1.1, sm_mhz, impossible, suspect_warm, wall_s"
        " FROM result WHERE result_id = 1");
  };
  add(1, "as_fast", "clock", "1");
  add(1, "verified", "", "0");
  add(1, "failed", "clock", "0");
  add(2, "chain3", "cupti", "0");
}

TEST_F(StoreMigrationTest, AMigrationStatesWhatOlderProgramsInferred) {
  for (int version = 1; version < 3; ++version) {
    SCOPED_TRACE("from version " + std::to_string(version));
    fs::remove(path_);
    write_old_store(path_, version);
    add_old_rows(path_);
    Store store = Store::open(path_, Store::Mode::update);
    std::map<std::string, Judged> judged;
    for (const int64_t run : {1, 2}) {
      for (const Level& l : store.levels(run)) judged[l.variant] = l.result.judged;
    }
    EXPECT_EQ(judged, (std::map<std::string, Judged>{{"chain", Judged::is_yardstick},
                                                     {"as_fast", Judged::ratio},
                                                     {"verified", Judged::none},
                                                     {"failed", Judged::none},
                                                     {"chain3", Judged::span}}));
    const RunInfo host = store.run_info(1), gpu = store.run_info(2);
    EXPECT_EQ(host.uuid.size(), 32u);
    EXPECT_NE(host.uuid, gpu.uuid);
    EXPECT_EQ(gpu.campaign, gpu.uuid);
    // What the report of that time compared; nothing is known of an operator that it did not name.
    ASSERT_EQ(host.operators.size(), 1u);
    EXPECT_EQ(host.operators[0].yardstick, "chain");
    EXPECT_EQ(host.operators[0].before.at(0).variant, "chain");
    ASSERT_EQ(gpu.operators.size(), 2u);
    EXPECT_EQ(gpu.operators[0].name, "qmoe_fc2");
    EXPECT_EQ(gpu.operators[0].yardstick, "");
    ASSERT_EQ(gpu.operators[0].before.size(), 3u);
    EXPECT_EQ(gpu.operators[0].before[0].after, "split_k?_fp32_acc");
    EXPECT_EQ(gpu.operators[1].before.at(0).variant, "chain3");
  }
}

TEST_F(StoreMigrationTest, AMigrationStatesWhatRatiosAreTo) {
  write_old_store(path_, 3);
  Database(path_, SQLITE_OPEN_READWRITE)
      .execute(
          "INSERT INTO operator VALUES (1, 'topk_sort', 'chain');"
          "UPDATE result SET judged = 'is_yardstick', code = 'c4a1';"
          "CREATE TEMP TABLE copy AS SELECT * FROM result;"
          "UPDATE copy SET result_id = 2, variant = 'fused', judged = 'ratio', code = 'f';"
          "INSERT INTO result SELECT * FROM copy;"
          "UPDATE copy SET result_id = 3, variant = 'span', judged = 'span';"
          "INSERT INTO result SELECT * FROM copy;");
  Store store = Store::open(path_, Store::Mode::update);
  std::map<std::string, std::string> yardsticks;
  for (const Level& l : store.levels(1)) {
    yardsticks[l.variant] = l.result.yardstick + "@" + l.result.yardstick_code;
    EXPECT_EQ(l.result.mean_ns, 0) << "unknown";
  }
  EXPECT_EQ(yardsticks, (std::map<std::string, std::string>{
                            {"chain", "chain@c4a1"}, {"fused", "chain@c4a1"}, {"span", "@"}}));
}

TEST_F(StoreMigrationTest, AReaderTakesAnOldStoreWhoseTablesAreTodays) {
  for (const int version : {6, 8}) {
    write_old_store(path_, version);
    EXPECT_PRED2(contains, refusal(path_, Store::Mode::read), "is a store of an older version");
    fs::remove(path_);
  }
  write_old_store(path_, 9);
  const std::string before = bytes_of(path_);
  {
    Store store = Store::open(path_, Store::Mode::read);
    EXPECT_EQ(store.levels(1).at(0).result.span_ns, 5000);
  }
  EXPECT_EQ(bytes_of(path_), before);
  const auto shape = [&] {  // of tables and views
    std::string all;
    Database db(path_, SQLITE_OPEN_READONLY);
    Statement q(db,
                "SELECT sql FROM sqlite_schema WHERE type <> 'index' AND name NOT LIKE 'sqlite_%' "
                "ORDER BY name");
    while (q.step()) all += q.text(0);
    return all;
  };
  const std::string old = shape();
  Store::open(path_, Store::Mode::update);
  EXPECT_EQ(shape(), old) << "else readers must refuse it: kReadable in store_open.cc";
}

TEST_F(StoreMigrationTest, CopiesOfAnOldStoreNameARunAndItsProcessesAlike) {
  write_old_store(path_, 5);
  Database(path_, SQLITE_OPEN_READWRITE)
      .execute(
          "UPDATE run SET uuid = 'a', campaign = 'a';"
          "INSERT INTO process VALUES (7, 1, 1, 4712, '2026-01-01T00:00:00Z', '')");
  std::set<std::string> names;
  for (const char* name : {"one.db", "two.db"}) {
    const std::string path = (dir_ / name).string();
    fs::copy(path_, path);
    Store store = Store::open(path, Store::Mode::update);
    EXPECT_EQ(store.run_info(1).shard, 0);
    EXPECT_EQ(store.run_info(1).shards, 0) << "no campaign";
    Statement q(store.database(), "SELECT uuid FROM process");
    while (q.step()) names.insert(q.text(0));
  }
  EXPECT_EQ(names, (std::set<std::string>{"a-1", "a-7"}));
}

}  // namespace
}  // namespace moegate
