// SPDX-License-Identifier: Apache-2.0
// What a store says that cannot be true, who may write into a run, and readers in a writer's way.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "harness/base/subprocess.h"
#include "harness/base/test_fixture.h"
#include "harness/store/store.h"

namespace moegate::test {
namespace {

class DamagedStore : public ::testing::Test {
 protected:
  DamagedStore() {
    RunInfo info;
    info.device = {Backend::cuda, "GPU", "gpu", "GPU-1", 1, 1, 1, 1, "1"};
    info.flush = "read";
    info.operators = {{"topk_sort", "", {{"chain3"}}}};
    Store store = Store::open(path_, Store::Mode::write);
    run_ = store.begin_run(info);
    const int64_t process = store.begin_process(run_, 0, 1);
    for (int tokens = 1; tokens <= 20; ++tokens) {
      Case c{"tiny", "a", "topk_sort", {{"tokens", std::to_string(tokens)}}, {}};
      Result r;
      r.variant = "chain3";
      r.timer = "cupti";
      r.judged = Judged::span;
      r.samples = 3;
      r.span_ns = 5000;
      r.accuracy.resize(1);
      r.seeds.resize(1);
      store.add_result(process, c, {}, {}, r);
    }
    store.end_run(run_, "complete");
  }
  void execute(const std::string& sql) {
    Database db(path_, SQLITE_OPEN_READWRITE);
    db.execute("PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0; " + sql);
  }
  /// The message of the Error(store) that reading the run throws.
  std::string refusal() {
    return refusal_of(
        [&] {
          Store store = Store::open(path_, Store::Mode::read);
          store.run_info(run_);
          store.levels(run_);
        },
        Exit::store);
  }

  ScratchFolder dir_;
  const std::string path_ = (dir_ / "r.db").string();
  int64_t run_ = 0;
};

TEST_F(DamagedStore, ValuesThatNoRunStoresAreRefused) {
  ASSERT_EQ(refusal(), "accepted");
  const std::pair<const char*, const char*> damages[] = {
      {"UPDATE result SET status = 'gk' WHERE result_id = 7", "'gk' is no status"},
      {"UPDATE result SET judged = 'gk' WHERE result_id = 7", "'gk' is no judged number"},
      {"UPDATE result SET span_ns = -5.0 WHERE result_id = 7", "row 7: span_ns is -5"},
      {"UPDATE result SET span_ns = 1e300 WHERE result_id = 7", "row 7: span_ns is 1e+300"},
      {"UPDATE result SET low_ns = 9.0 WHERE result_id = 7", "row 7: low_ns is above high_ns"},
      {"UPDATE verified_seed SET hash = 'xyz'", "'xyz' is no hash"},
      {"UPDATE device SET device_id = 9", "a run of no device"},
      {"UPDATE before SET op = 'other'", "a before of no operator"},
      {"UPDATE run_case SET suite = '../../etc/x'",
       "suite '../../etc/x' of a run is no name of a file"},
      {"UPDATE run_case SET suite = '/etc/x'", "suite '/etc/x' of a run is no name"},
      {"UPDATE run_case SET suite = '.x'", "suite '.x' of a run is no name"},
      {"UPDATE run_case SET suite = 'x' || char(10)", "is no name of a file"},
      {"UPDATE device SET class = '../..'", "the device class '../..' of a run is no name"},
      {"UPDATE device SET class = ''", "the device class '' of a run is no name"},
      {"UPDATE run SET program = '../x'", "the program '../x' of a run is no name"},
      {"UPDATE run SET git_sha = '--upload-pack=x'", "of a run is no name of a file"},
  };
  std::filesystem::copy(path_, dir_ / "good");
  for (const auto& [sql, message] : damages) {
    std::filesystem::copy(dir_ / "good", path_, std::filesystem::copy_options::overwrite_existing);
    execute(sql);
    EXPECT_NE(refusal().find(message), std::string::npos) << sql << ": " << refusal();
    EXPECT_NE(refusal().find("restore a copy"), std::string::npos) << refusal();
  }
}

TEST_F(DamagedStore, WhatSomebodyPlantedInItsSchemaIsRefused) {
  const std::pair<const char*, const char*> planted[] = {
      {"CREATE TRIGGER evil AFTER INSERT ON result BEGIN UPDATE result SET span_ns = 1; END",
       "the store has an unknown object: trigger 'evil'"},
      {"CREATE VIEW evil AS SELECT * FROM result", "an unknown object: view 'evil'"},
      {"CREATE TABLE evil (x)", "an unknown object: table 'evil'"},
      {"CREATE INDEX evil ON result (span_ns)", "an unknown object: index 'evil'"},
      {"DROP VIEW accuracy; CREATE VIEW accuracy AS SELECT 1", "a changed object: view"},
      {"DROP VIEW seed_error", "the store lacks an object: view 'seed_error'"},
      {"ALTER TABLE ceiling RENAME TO other; CREATE VIEW ceiling AS SELECT * FROM other",
       "an unknown object"},
  };
  std::filesystem::copy(path_, dir_ / "good");
  for (const auto& [sql, message] : planted) {
    std::filesystem::copy(dir_ / "good", path_, std::filesystem::copy_options::overwrite_existing);
    execute(sql);
    for (const Store::Mode mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
      const std::string why = refusal_of([&] { Store::open(path_, mode); }, Exit::store);
      EXPECT_NE(why.find(message), std::string::npos) << sql << ": " << why;
    }
  }
}

TEST_F(DamagedStore, CommentsAndSpacesOfItsSchemaMayBeOthers) {
  const auto rewrite = [&](const std::string& from, const std::string& to) {
    Database db(path_, SQLITE_OPEN_READWRITE);
    sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    db.execute("PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '" + from +
               "', '" + to + "') WHERE name = 'run'");
    EXPECT_EQ(db.integer("SELECT changes()"), 1);
  };
  rewrite("-- What the user typed.", "--  as ''typed");
  rewrite("rounds    INTEGER", "rounds  -- of it\n INTEGER");
  EXPECT_EQ(refusal(), "accepted");
  rewrite("''running'', ''complete''", "''running--'', ''evil\n'', ''complete''");
  EXPECT_NE(refusal().find("the store has a changed object: table 'run'"), std::string::npos)
      << refusal();
}

TEST_F(DamagedStore, ANumberThatIsNotWhatWasStoredIsFoundByItsChecksum) {
  const std::pair<const char*, const char*> damages[] = {
      {"UPDATE result SET span_ns = 5000.25 WHERE result_id = 7", "its numbers are"},
      {"UPDATE result SET status = 'noisy' WHERE result_id = 7", "its numbers are"},
      {"UPDATE result SET variant = 'chain4' WHERE result_id = 7", "its numbers are"},
      {"UPDATE result SET suspect_warm = 1 WHERE result_id = 7", "its numbers are"},
      {"UPDATE result SET case_id = 8 - case_id, variant = variant || case_id WHERE case_id < 8",
       "its numbers are"},
      {"UPDATE verified_output SET rel_l2 = 1e-3", "its accuracy and seeds are"},
      {"UPDATE verified_seed SET truth = NULL", "its accuracy and seeds are"},
      {"UPDATE result SET verification_id = 0 WHERE result_id = 7", "its accuracy and seeds are"},
  };
  std::filesystem::copy(path_, dir_ / "good");
  for (const auto& [sql, message] : damages) {
    std::filesystem::copy(dir_ / "good", path_, std::filesystem::copy_options::overwrite_existing);
    execute(sql);
    EXPECT_NE(refusal().find(message), std::string::npos) << sql << ": " << refusal();
    const std::string verdict = refusal_of(
        [&] { Store::open(path_, Store::Mode::read).each_level(run_)([](const Level&) {}); },
        Exit::store);
    EXPECT_NE(verdict.find(message), std::string::npos) << sql << ": " << verdict;
    EXPECT_THROW(Store::open(path_, Store::Mode::read).check_results(run_), Error) << sql;
  }
  std::filesystem::copy(dir_ / "good", path_, std::filesystem::copy_options::overwrite_existing);
  execute(damages[0].first);
  EXPECT_NE(refusal().find(
                "is damaged: row 7 of run 1 (variant chain3): its numbers are not what was stored"),
            std::string::npos)
      << refusal();
  execute("UPDATE result SET checksum = 0");
  EXPECT_EQ(refusal(), "accepted") << "whoever inserted them made none";
}

TEST_F(DamagedStore, WhatIsFoundOutLaterHasItsChecksumToo) {
  Store store = Store::open(path_, Store::Mode::write);
  const std::string key = store.levels(run_).front().key;
  store.mark_suspect_warm(run_, key, "chain3");
  store.mark_crashed(1, key, "chain3", "died later");
  const Result marked = store.levels(run_).front().result;
  EXPECT_TRUE(marked.suspect_warm);
  EXPECT_EQ(marked.why, "died later");
  store.database().execute("UPDATE result SET min_ns = 1");
  store.mark_suspect_warm(run_, key, "chain3");
  EXPECT_THROW(store.levels(run_), Error) << "a mark makes no damage whole";
}

TEST_F(DamagedStore, NumbersThatAreNotFiniteOrHaveASignHaveTheSameChecksumWhenTheyComeBack) {
  Store store = Store::open(path_, Store::Mode::write);
  Result r;
  r.variant = "odd";
  r.timer = "cupti";
  r.samples = 1;
  r.span_ns = 1;
  r.ratio = -0.0;
  r.accuracy = {{.rel_l2 = std::nan(""), .cosine = -std::numeric_limits<double>::infinity()}};
  r.accuracy.push_back({.output = "z"});
  r.accuracy.push_back({.output = "a", .max_abs = 1});  // they come back by name
  r.seeds = {{.seed = 7}, {.seed = -1, .hash = ~uint64_t{0}, .bias = -0.0}};
  store.add_result(1, {"tiny", "a", "topk_sort", {{"tokens", "1"}}, {}}, {}, {}, r);
  EXPECT_EQ(store.levels(run_).size(), 21u);
}

TEST_F(DamagedStore, PagesThatAreNoneAreFoundBeforeAVerdict) {
  {
    Store store = Store::open(path_, Store::Mode::read);
    store.check_intact();
  }
  Database db(path_, SQLITE_OPEN_READWRITE);
  const int64_t page =
      db.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'verified_seed'");
  const int64_t bytes = db.integer("PRAGMA page_size");
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp((page - 1) * bytes);
  file << std::string(100, 'x');
  file.close();
  Store store = Store::open(path_, Store::Mode::read);
  EXPECT_NO_THROW(store.check_intact(1000)) << "too large to be read";
  const std::string why = refusal_of([&] { store.check_intact(); }, Exit::store);
  EXPECT_NE(why.find("restore a copy"), std::string::npos) << why;
}

TEST_F(DamagedStore, AVersionBelowOneIsNone) {
  execute("PRAGMA user_version = -1");
  EXPECT_NE(refusal().find("its version is -1, so it is damaged"), std::string::npos) << refusal();
}

TEST_F(DamagedStore, ARunIsWrittenByOne) {
  std::optional<RunLock> mine(std::in_place, path_, 1);
  RunLock other_run(path_, 2);
  EXPECT_THROW(RunLock(path_, 1), Error);
  mine.reset();
  EXPECT_NO_THROW(RunLock(path_, 1));
}

TEST_F(DamagedStore, ResumesWhatIsNotComplete) {
  Store store = Store::open(path_, Store::Mode::write);
  RunInfo info = store.run_info(run_);
  EXPECT_THROW(store.find_resumable("latest"), Error);
  EXPECT_THROW(store.find_resumable("1"), Error) << "complete";
  const int64_t running = store.begin_run(RunInfo{.device = info.device, .flush = "read"});
  EXPECT_EQ(store.find_resumable("latest"), running);
  EXPECT_EQ(store.find_resumable("2"), running);
  const int64_t side =
      store.begin_run(RunInfo{.device = info.device, .flush = "read", .tags = {{"ab", "base"}}});
  EXPECT_EQ(store.find_resumable("latest"), running);
  EXPECT_THROW(store.find_resumable(std::to_string(side)), Error);
}

TEST_F(DamagedStore, AWriterWaitsForReadersAsLongAsItIsTold) {
  Database writer(path_, SQLITE_OPEN_READWRITE);
  Database other(path_, SQLITE_OPEN_READWRITE);
  other.execute("BEGIN IMMEDIATE");
  int asked = 0;
  writer.wait_while([&](double) {
    if (++asked == 3) other.execute("ROLLBACK");
    return true;
  });
  EXPECT_NO_THROW(writer.execute("DELETE FROM tag"));
  EXPECT_EQ(asked, 3);
  other.execute("BEGIN IMMEDIATE");
  writer.wait_while([](double) { return false; });
  EXPECT_THROW(writer.execute("DELETE FROM tag"), SqlError);
}

TEST_F(DamagedStore, ALimitEndsAStatementThatDoesNotEnd) {
  Database db(path_, SQLITE_OPEN_READONLY);
  const TimeLimit limit(db, 0.01);
  EXPECT_THROW(db.integer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                          "SELECT sum(i) FROM n"),
               SqlError);
  EXPECT_TRUE(limit.over());
}

}  // namespace
}  // namespace moegate::test
