// SPDX-License-Identifier: Apache-2.0
// Which files a store takes, and that it leaves all others as they were.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "harness/base/test_fixture.h"
#include "harness/store/crash_fixture.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"
#include "harness/store/store_fixture.h"
#include "harness/values/fields_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

using StoreFilesTest = StoreFixture;

TEST_F(StoreFilesTest, RefusesWhatIsNotThere) {
  for (auto mode : {Store::Mode::read, Store::Mode::update}) {
    EXPECT_NE(refusal(path_, mode).find("moegate run --suite S --db"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(path_)) << "reading makes no file";
  EXPECT_NE(refusal((dir_ / "no" / "r.db").string(), Store::Mode::write).find("folder"),
            std::string::npos);
  EXPECT_NE(refusal(dir_.path().string(), Store::Mode::write).find("is a folder"),
            std::string::npos);
}

TEST_F(StoreFilesTest, RefusesForeignFilesAndLeavesThemUntouched) {
  std::ofstream(path_) << "tokens = 1\n";
  const std::string other = (dir_ / "other.db").string();
  Database(other, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute("CREATE TABLE t (x)");
  for (const std::string& path : {path_, other}) {
    const std::string before = bytes_of(path);
    for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
      EXPECT_NE(refusal(path, mode).find("another --db"), std::string::npos);
    }
    EXPECT_EQ(bytes_of(path), before);
  }
}

TEST_F(StoreFilesTest, RefusesANewerStoreAndLeavesItUntouched) {
  { Store::open(path_, Store::Mode::write).database().execute("PRAGMA user_version = 999"); }
  const std::string before = bytes_of(path_);
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    EXPECT_NE(refusal(path_, mode).find("version 999"), std::string::npos);
  }
  EXPECT_EQ(bytes_of(path_), before);
}

TEST_F(StoreFilesTest, RefusesAStoreFromBefore020AndLeavesItUntouched) {
  for (const int version : {1, 9}) {
    fs::remove(path_);
    Database(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        .execute(
            "CREATE TABLE run (x); PRAGMA application_id = 0x4D6F4550; PRAGMA user_version = " +
            std::to_string(version));
    const std::string before = bytes_of(path_);
    for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
      const std::string why = refusal(path_, mode);
      const std::string is =
          path_ + ": a moegate before 0.2.0 wrote this store (version " + std::to_string(version);
      EXPECT_PRED2(contains, why, is);
      EXPECT_PRED2(contains, why, "choose another --db, or use the program of the commit");
    }
    EXPECT_EQ(bytes_of(path_), before);
  }
}

TEST_F(StoreFilesTest, TakesAnEmptyFileForANewStore) {
  std::ofstream(path_).flush();
  EXPECT_NE(refusal(path_, Store::Mode::read).find("empty"), std::string::npos);
  EXPECT_EQ(Store::open(path_, Store::Mode::write).begin_run(host_run()), 1);
}

TEST_F(StoreFilesTest, WritesNothingIntoAFileThatWasTakenAway) {
  Store store = Store::open(path_, Store::Mode::write);
  fs::remove(path_);
  const std::string why = refusal_of([&] { store.begin_run(host_run()); }, Exit::store);
  EXPECT_NE(why.find("was removed or replaced"), std::string::npos) << why;
}

TEST_F(StoreFilesTest, LeavesForeignFilesAndTheirJournalsAlone) {
  CrashVfs vfs;
  const auto execute = [&](const std::string& sql) {
    Database(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute(sql);
  };
  for (const char* id : {"0", "7"}) {
    fs::remove(path_);
    execute(std::string("CREATE TABLE t (x); PRAGMA application_id = ") + id);
    for (int k = 0; vfs.killed_at(k, [&] { execute("INSERT INTO t VALUES (1)"); }); ++k) {
      const std::string journal = path_ + "-journal";
      const std::string before = bytes_of(path_), journal_before = bytes_of(journal);
      for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
        EXPECT_NE(refusal(path_, mode), "accepted") << k;
      }
      EXPECT_TRUE(bytes_of(path_) == before) << k;
      EXPECT_TRUE(bytes_of(journal) == journal_before) << k;
      fs::remove(journal);
    }
  }
}

TEST_F(StoreFilesTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    EXPECT_TRUE(contains(refusal(path_, mode), "not a regular file")) << refusal(path_, mode);
  }
  EXPECT_TRUE(fs::is_fifo(path_));
}

// The schema as a contract: a table or column that comes, goes or gets another name is seen here.

using SchemaTest = StoreFixture;

/// "version 1", and a line for each table and view: "tag: run_id name value".
std::string columns_of_all(Database& db) {
  std::string text = "version " + std::to_string(db.integer("PRAGMA user_version")) + "\n";
  Statement q(db,
              "SELECT s.name || ':' || group_concat(' ' || c.name, '') FROM sqlite_schema s, "
              "pragma_table_info(s.name) c WHERE s.type IN ('table', 'view') AND "
              "s.name NOT LIKE 'sqlite_%' GROUP BY s.name ORDER BY s.name");
  while (q.step()) text += q.text(0) + "\n";
  return text;
}

TEST_F(SchemaTest, HasTheColumnsThatOthersMayRead) {
  Store store = Store::open(path_, Store::Mode::write);
  EXPECT_EQ(columns_of_all(store.database()),
            read_file(MOEGATE_SOURCE_DIR "/harness/store/schema_columns.txt"))
      << "CONTRACTS.md says what a change of the schema needs: another version, first of all";
}

// What the field lists promise: whatever a result or a run states comes back from the store.

class StoreFields : public ::testing::Test {
 protected:
  ScratchFolder folder_;
  const std::string path_ = (folder_ / "r.db").string();
  const Case case_{"tiny", "gpt-oss-120b", "topk_sort", {{"tokens", "8"}}, {}};
};

TEST_F(StoreFields, EveryFieldOfAResultSurvives) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(RunInfo{.flush = "read"});
  auto result = Distinct().make<Result>();
  result.status = Status::noisy;
  store.add_result(store.begin_process(run, 0, 1), case_, {}, {}, result);
  const auto levels = store.levels(run);
  ASSERT_EQ(levels.size(), 1u);
  const Result& back = levels[0].result;
  expect_same(back, result, kFields<Result>);
  expect_same(back, result, MOEGATE_FIELDS(Result, accuracy, seeds, metrics));
  Statement kernels(store.database(),
                    "SELECT " + columns_of<KernelRow>("k") + " FROM kernel k ORDER BY ordinal");
  for (const KernelRow& kernel : result.kernels) {
    ASSERT_TRUE(kernels.step());
    expect_same(RowReader<KernelRow>(kernels).read(), kernel, kFields<KernelRow>);
  }
  EXPECT_FALSE(kernels.step());
}

TEST_F(StoreFields, EveryFieldOfARunSurvives) {
  Store store = Store::open(path_, Store::Mode::write);
  auto run = Distinct().make<RunInfo>();
  run.flush = "write";
  run.task = "energy";  // one of the names that there are
  run.id = store.begin_run(run);
  store.end_run(run.id, "interrupted");
  const RunInfo back = store.run_info(run.id);
  EXPECT_EQ(back.started.size(), 20u);  // 2026-11-03T12:34:56Z
  EXPECT_EQ(back.finished.size(), 20u);
  EXPECT_EQ(back.status, "interrupted");
  // What the store sets.
  run.started = back.started;
  run.finished = back.finished;
  run.status = back.status;
  run.rounds = 0;
  expect_same(back, run, kFields<RunInfo>);
  expect_same(back, run, kParts<RunInfo>);
}

TEST_F(StoreFields, EveryRunHasANameOfItsOwn) {
  Store store = Store::open(path_, Store::Mode::write);
  const RunInfo a = store.run_info(store.begin_run(host_run()));
  const RunInfo b = store.run_info(store.begin_run(host_run()));
  EXPECT_EQ(a.uuid.size(), 32u);
  EXPECT_NE(a.uuid, b.uuid);
  EXPECT_EQ(a.campaign, a.uuid) << "it stands alone";
  RunInfo part = host_run();
  part.campaign = a.uuid;
  EXPECT_EQ(store.run_info(store.begin_run(part)).campaign, a.uuid);
  part.uuid = a.uuid;
  EXPECT_THROW(store.begin_run(part), Error) << "the same run once more";
}

}  // namespace
}  // namespace moegate::test
