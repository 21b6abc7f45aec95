// SPDX-License-Identifier: Apache-2.0
// What is left of a store after its writer died, and which files a store does not touch.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "harness/base/scratch_fixture.h"
#include "harness/store/crash_fixture.h"
#include "harness/store/store.h"
#include "schema_sql.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

class StoreOpenTest : public ::testing::Test {
 protected:
  /// The message of the Error(store) that opening throws; empty when it does not.
  static std::string refusal(const std::string& path, Store::Mode mode) {
    try {
      Store::open(path, mode);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::store) << e.what();
      return e.what();
    }
    return "";
  }

  /// A copy of the store and its journal, which lives until the next copy.
  std::string copy() const {
    const fs::path folder = dir_ / "copy";
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      if (entry.is_regular_file()) fs::copy(entry.path(), folder / entry.path().filename());
    }
    return (folder / "r.db").string();
  }

  /// Ends `work` before each of its changes of a file, on a store that `prepare` makes, and checks
  /// what is left each time.
  void kill_at_every_change(const std::function<void()>& prepare,
                            const std::function<void()>& work);
  void check_remains();
  void check_remains_read_only();

  CrashVfs vfs_;
  ScratchFolder dir_;
  const std::string path_ = (dir_ / "r.db").string();
  int died_ = 0;  // times that a store which may not be written said that its writer died
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// True of the refusals that a store deserves which its writer had not finished making or
/// migrating.
bool is_unfinished(const std::string& refusal) {
  return contains(refusal, "no such store") || contains(refusal, "is an empty file") ||
         contains(refusal, "is a store of an older version");
}

RunInfo some_run() {
  RunInfo info;
  info.label = "nightly";
  info.device = {Backend::host, "CPU", "host", "a-host", 2, 1, 1, 1, ""};
  info.flush = "lines";
  return info;
}

Result some_result() {
  Result r;
  r.variant = "chain";
  r.timer = "clock";
  r.samples = 2;
  r.span_ns = 5000;
  r.accuracy.resize(1);
  r.seeds.resize(2);
  r.seeds[1].seed = 1;
  r.kernels.resize(2);
  r.spans_ns = {5000.f, 5001.f};
  return r;
}

/// One result, from a store that does not exist to a run that is complete.
void write_run(const std::string& path) {
  Store store = Store::open(path, Store::Mode::write);
  const int64_t run = store.begin_run(some_run());
  const int64_t process = store.begin_process(run, 0, 1);
  const Case c{"tiny", "gpt", "topk_sort", {{"tokens", "8"}}, {}};
  store.add_result(process, c, {1, 2, 3}, {{"active_experts", 57}}, some_result());
  store.end_process(process, "");
  store.end_run(run, "complete");
}

/// A store of an old version as the program of that version left it, with one result and verdict.
void write_old_store(const std::string& path, int version) {
  Database db(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  db.execute("BEGIN");
  for (int v = 0; v < version; ++v) db.execute(kMigrations.at(static_cast<size_t>(v)));
  db.execute(
      "INSERT INTO device VALUES (1, 'host', 'CPU', 'host', 'a-host', '', 2, 1, 1, 1);"
      "INSERT INTO run (run_id, label, started, status, device_id, protocol, timer, flush, rounds,"
      " git_sha, dirty, build, host, command, options)"
      " VALUES (1, 'old', '2026-01-01T00:00:00Z', 'complete', 1, 1, 'clock', 'lines', 1, '', 0, '',"
      " '', '', '{}');"
      "INSERT INTO process VALUES (1, 1, 0, 4711, '2026-01-01T00:00:00Z', '');"
      "INSERT INTO bench_case VALUES (1, 'topk_sort tokens=8', 'topk_sort', '{}', 1, 2, 3);"
      "INSERT INTO run_case VALUES (1, 1, 'tiny', 'gpt', '{}');"
      "INSERT INTO result (process_id, case_id, variant, status, why, path, deterministic, timer,"
      " tick_ns, samples, invalid, flags, span_ns, median_ns, low_ns, high_ns, min_ns, busy_ns,"
      " sum_ns, ratio, ratio_low, ratio_high, sm_mhz, impossible, suspect_warm, wall_s)"
      " VALUES (1, 1, 'chain', 'ok', '', '', 1, 'clock', 1, 1, 0, 0, 5000, 5000, 5000, 5000, 5000,"
      " 5000, 5000, 1, 1, 1, 0, 0, 0, 1);"
      "INSERT INTO accuracy (result_id, output, ok, why, elements, mismatches, nonfinite, rel_l2,"
      " worst_index) VALUES (1, 'weights', 1, '', 8, 0, 0, 1e-6, 0);"
      "INSERT INTO kernel VALUES (1, 0, 'a', '', '', '', 0, 0, 0, 1, 0),"
      " (1, 1, 'b', '', '', '', 0, 0, 0, 1, 0);"
      "INSERT INTO sample VALUES (1, x'00409c45')");
  db.execute(version == 1
                 ? "INSERT INTO verdict VALUES (1, 1, 'chain', 'base.ini', 'pass', 1, 1, 0,"
                   " 0, 0, 1, 1, 0.01, 'same')"
                 : "INSERT INTO verdict VALUES (1, 'base.ini', 'tiny', 'topk_sort tokens=8',"
                   " 'chain', 'pass', 1, 1, 1, 0, 0, 0, 1, 1, 1, 0.01, 0, 1, '', 'same')");
  db.execute("PRAGMA application_id = 0x4D6F4550; PRAGMA user_version = " +
             std::to_string(version) + "; COMMIT");
}

void expect_whole(Store& store) {
  Database& db = store.database();
  Statement check(db, "PRAGMA integrity_check");
  ASSERT_TRUE(check.step());
  EXPECT_EQ(check.text(0), "ok");
  EXPECT_FALSE(Statement(db, "PRAGMA foreign_key_check").step());
  EXPECT_EQ(db.integer("SELECT count(*) FROM result r WHERE"
                       " (SELECT count(*) FROM accuracy a WHERE a.result_id = r.result_id) <> 1"
                       " OR (SELECT count(*) FROM kernel k WHERE k.result_id = r.result_id) <> 2"
                       " OR (SELECT count(*) FROM sample s WHERE s.result_id = r.result_id) <> 1"),
            0);
  EXPECT_EQ(store.levels(1).size(), db.integer("SELECT count(*) FROM result"));
}

void StoreOpenTest::check_remains() {
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    const std::string path = copy();
    try {
      Store store = Store::open(path, mode);
      expect_whole(store);
      if (mode != Store::Mode::read) store.begin_run(some_run());
    } catch (const Error& e) {
      EXPECT_TRUE(mode != Store::Mode::write && is_unfinished(e.what()))
          << "mode " << static_cast<int>(mode) << ": " << e.what();
    }
  }
}

void StoreOpenTest::check_remains_read_only() {
  vfs_.make_read_only(true);
  const std::string path = copy();
  const std::string before = bytes_of(path);
  const std::string why = refusal(path, Store::Mode::read);
  if (contains(why, "a writer died")) {
    ++died_;
  } else {
    EXPECT_TRUE(why.empty() || is_unfinished(why)) << why;
  }
  EXPECT_TRUE(bytes_of(path) == before);
  vfs_.make_read_only(false);
}

void StoreOpenTest::kill_at_every_change(const std::function<void()>& prepare,
                                         const std::function<void()>& work) {
  for (int k = 0;; ++k) {
    SCOPED_TRACE("killed before change " + std::to_string(k));
    fs::remove_all(dir_.path());
    fs::create_directories(dir_.path());
    prepare();
    if (!vfs_.killed_at(k, work)) {
      EXPECT_GT(k, 10) << "changes of a file";
      return;
    }
    check_remains();
    check_remains_read_only();
    if (HasFailure()) return;
  }
}

TEST_F(StoreOpenTest, OpensWhereverTheWriterOfARunDied) {
  kill_at_every_change([] {}, [&] { write_run(path_); });
  EXPECT_GT(died_, 0);
}

TEST_F(StoreOpenTest, OpensWhereverAMigrationDied) {
  for (int version = 1; version < static_cast<int>(kMigrations.size()); ++version) {
    kill_at_every_change([&] { write_old_store(path_, version); },
                         [&] { Store::open(path_, Store::Mode::update); });
  }
  EXPECT_GT(died_, 0);
}

TEST_F(StoreOpenTest, AMigrationKeepsWhatThereIs) {
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
      "INSERT INTO process VALUES (2, 2, 0, 4712, '2026-01-01T00:00:00Z', '');"
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

TEST_F(StoreOpenTest, AMigrationStatesWhatOlderProgramsInferred) {
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

TEST_F(StoreOpenTest, AMigrationStatesWhatRatiosAreTo) {
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

TEST_F(StoreOpenTest, AJournalOfGarbageLocksNothingOut) {
  write_run(path_);
  std::ofstream(path_ + "-journal") << "this is no journal, and longer than the head of one";
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    const std::string path = copy();
    ASSERT_EQ(refusal(path, mode), "");
    Store store = Store::open(path, mode);
    EXPECT_EQ(store.levels(1).size(), 1u);
  }
}

TEST_F(StoreOpenTest, LeavesForeignFilesAndTheirJournalsAlone) {
  const auto execute = [&](const std::string& sql) {
    Database(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute(sql);
  };
  for (const char* id : {"0", "7"}) {
    fs::remove(path_);
    execute(std::string("CREATE TABLE t (x); PRAGMA application_id = ") + id);
    for (int k = 0; vfs_.killed_at(k, [&] { execute("INSERT INTO t VALUES (1)"); }); ++k) {
      const std::string journal = path_ + "-journal";
      const std::string before = bytes_of(path_), journal_before = bytes_of(journal);
      for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
        EXPECT_NE(refusal(path_, mode), "") << k;
      }
      EXPECT_TRUE(bytes_of(path_) == before) << k;
      EXPECT_TRUE(bytes_of(journal) == journal_before) << k;
      fs::remove(journal);
    }
  }
}

TEST_F(StoreOpenTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    EXPECT_TRUE(contains(refusal(path_, mode), "no regular file")) << refusal(path_, mode);
  }
  EXPECT_TRUE(fs::is_fifo(path_));
}

}  // namespace
}  // namespace moegate
