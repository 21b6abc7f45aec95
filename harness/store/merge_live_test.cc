// SPDX-License-Identifier: Apache-2.0
// Merges beside other processes that use the same stores, and stores that hold nothing.
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>

#include "harness/store/merge.h"
#include "harness/store/store_fixture.h"

namespace moegate {
namespace {

/// While it lives, `see` is called before each statement of every connection that is opened meanwhile.
class Watch {
 public:
  using See = std::function<void(const std::string& file, const std::string& sql)>;
  explicit Watch(See see) {
    see_ = std::move(see);
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(begin));
  }
  ~Watch() {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(begin));
    see_ = nullptr;
  }

 private:
  static int begin(sqlite3* db, const char**, const sqlite3_api_routines*) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, trace, db);
  }
  static int trace(unsigned, void* db, void* statement, void*) {
    const char* file = sqlite3_db_filename(static_cast<sqlite3*>(db), "main");
    if (see_) see_(file ? file : "", sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
    return 0;
  }
  static inline See see_;
};

class MergeLiveTest : public StoreFixture {
 protected:
  std::string at(const std::string& name) const { return (dir_ / (name + ".db")).string(); }
  std::string write(const std::string& name) const {
    write_run(at(name));
    return at(name);
  }
  int64_t count(const std::string& path, const std::string& table) const {
    Database db(path, SQLITE_OPEN_READWRITE);
    return db.integer("SELECT count(*) FROM " + table);
  }
  int files_with(const std::string& part) const {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      found += contains(entry.path().filename().string(), part) ? 1 : 0;
    }
    return found;
  }
};

TEST_F(MergeLiveTest, AStoreWithoutARunIsNamedAndLeftOut) {
  const std::string whole = write("whole");
  const std::string nothing = at("nothing"), no_run = at("no_run");
  Database(nothing, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute("VACUUM");
  Store::open(no_run, Store::Mode::write);
  const Merged merged = merge_into(at("out"), {nothing, whole, no_run}, {});
  EXPECT_EQ(merged.added, 1);
  ASSERT_EQ(merged.notes.size(), 2u);
  EXPECT_TRUE(contains(merged.notes[0], nothing + " holds no run, and is left out"));
  EXPECT_TRUE(contains(merged.notes[1], no_run + " holds no run, and is left out"));
  EXPECT_EQ(count(at("out"), "result"), 1);
  EXPECT_NE(refusal_of([&] { merge_into(at("none"), {nothing}, {}); }, Exit::coverage), "accepted");
  EXPECT_EQ(files_with("none"), 0);
}

TEST_F(MergeLiveTest, WhoWritesIntoASourceWaitsForOneRunAtMost) {
  const std::string first = write("first"), second = write("second");
  int written = 0;
  {
    Watch watch([&](const std::string& file, const std::string& sql) {
      if (!contains(file, "second.db") || !contains(sql, "FROM process WHERE run_id")) return;
      Database writer(first, SQLITE_OPEN_READWRITE);
      writer.wait_while([](double) { return false; });
      try {
        writer.execute("UPDATE run SET command = 'while it was merged'");
        ++written;
      } catch (const Error&) {  // it is held
      }
    });
    merge_into(at("out"), {first, second}, {});
  }
  EXPECT_GT(written, 0);
  EXPECT_EQ(count(at("out"), "run"), 2);
}

TEST_F(MergeLiveTest, ARefusedMergeLeavesAStoreThatOthersMakeMeanwhile) {
  const std::string good = write("good"), other = write("other");
  Database(other, SQLITE_OPEN_READWRITE).execute("UPDATE run SET protocol = 2");
  const std::string out = at("out");
  Watch watch([&, made = false](const std::string& file, const std::string&) mutable {
    if (made || !contains(file, "other.db")) return;
    made = true;
    Store::open(out, Store::Mode::write);  // has no run yet
  });
  EXPECT_NE(refusal_of([&] { merge_into(out, {good, other}, {}); }), "accepted");
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_EQ(files_with(".tmp"), 0);
}

TEST_F(MergeLiveTest, WhatIsMergedGoesIntoAStoreThatOthersMadeMeanwhile) {
  const std::string good = write("good"), out = at("out");
  {
    Watch watch([&, made = false](const std::string& file, const std::string&) mutable {
      if (made || !contains(file, "good.db")) return;
      made = true;
      write_run(out);
    });
    EXPECT_EQ(merge_into(out, {good}, {}).added, 1);
  }
  EXPECT_EQ(count(out, "run"), 2);
  EXPECT_EQ(files_with(".tmp"), 0);
}

TEST_F(MergeLiveTest, AStoreThatAnotherProcessIsMakingIsNotForeign) {
  Database(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute("VACUUM");
  std::future<void> other;
  {
    Watch watch([&](const std::string&, const std::string& sql) {
      if (other.valid() || !contains(sql, "PRAGMA user_version")) return;
      other = std::async(std::launch::async, [&] { Store::open(path_, Store::Mode::write); });
      other.wait_for(std::chrono::milliseconds(300));  // it may wait for this connection
    });
    // Still empty, or a store by now.
    EXPECT_FALSE(contains(refusal(path_, Store::Mode::read), "of another program"));
  }
  ASSERT_TRUE(other.valid());
  other.get();
  EXPECT_EQ(refusal(path_, Store::Mode::read), "accepted");
}

}  // namespace
}  // namespace moegate
