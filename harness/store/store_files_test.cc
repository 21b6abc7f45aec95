// SPDX-License-Identifier: Apache-2.0
// Which files a store takes, and that it leaves all others as they were.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "harness/store/crash_fixture.h"
#include "harness/store/store_fixture.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

using StoreFilesTest = StoreFixture;

TEST_F(StoreFilesTest, RefusesWhatIsNotThere) {
  for (auto mode : {Store::Mode::read, Store::Mode::update}) {
    EXPECT_NE(refusal(path_, mode).find("moegate run --db"), std::string::npos);
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
      const std::string is = path_ + ": is a store of version " + std::to_string(version) + " of a";
      EXPECT_PRED2(contains, why, is);
      EXPECT_PRED2(contains, why, "run again with this program into another --db, or read it with");
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
    EXPECT_TRUE(contains(refusal(path_, mode), "no regular file")) << refusal(path_, mode);
  }
  EXPECT_TRUE(fs::is_fifo(path_));
}

}  // namespace
}  // namespace moegate
