// SPDX-License-Identifier: Apache-2.0
// What is left of a store after its writer died.
#include <filesystem>
#include <fstream>
#include <set>

#include "harness/store/crash_fixture.h"
#include "harness/store/merge.h"
#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class StoreKilledTest : public StoreFixture {
 protected:
  /// Ends `work` before each of its changes of a file, on a store that `prepare` makes, and checks
  /// what is left each time.
  void kill_at_every_change(const std::function<void()>& prepare, const std::function<void()>& work,
                            const std::function<void(Store&)>& look = nullptr);
  void check_remains(const std::function<void(Store&)>& look);
  void check_remains_read_only();

  const ScratchFolder other_;  // which no kill touches
  CrashVfs vfs_;
  int died_ = 0;  // times that a store which may not be written said that its writer died
};

/// True of the refusals that a store deserves which its writer had not finished making.
bool is_unfinished(const std::string& refusal) {
  return contains(refusal, "no such store") || contains(refusal, "is an empty file");
}

void StoreKilledTest::check_remains(const std::function<void(Store&)>& look) {
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    const std::string path = copy();
    try {
      Store store = Store::open(path, mode);
      expect_whole(store);
      if (look) look(store);
      if (mode != Store::Mode::read) store.begin_run(host_run());
    } catch (const Error& e) {
      EXPECT_TRUE(mode != Store::Mode::write && is_unfinished(e.what()))
          << "mode " << static_cast<int>(mode) << ": " << e.what();
    }
  }
}

void StoreKilledTest::check_remains_read_only() {
  vfs_.make_read_only(true);
  const std::string path = copy();
  const std::string before = bytes_of(path);
  const std::string why = refusal(path, Store::Mode::read);
  if (contains(why, "a process died")) {
    ++died_;
  } else {
    EXPECT_TRUE(why == "accepted" || is_unfinished(why)) << why;
  }
  EXPECT_TRUE(bytes_of(path) == before);
  vfs_.make_read_only(false);
}

void StoreKilledTest::kill_at_every_change(const std::function<void()>& prepare,
                                           const std::function<void()>& work,
                                           const std::function<void(Store&)>& look) {
  for (int k = 0;; ++k) {
    SCOPED_TRACE("killed before change " + std::to_string(k));
    fs::remove_all(dir_.path());
    fs::create_directories(dir_.path());
    prepare();
    if (!vfs_.killed_at(k, work)) {
      EXPECT_GT(k, 10) << "changes of a file";
      return;
    }
    check_remains(look);
    check_remains_read_only();
    if (HasFailure()) return;
  }
}

TEST_F(StoreKilledTest, OpensWhereverTheWriterOfARunDied) {
  kill_at_every_change([] {}, [&] { write_run(path_); });
  EXPECT_GT(died_, 0);
}

TEST_F(StoreKilledTest, AMergeThatDiedHasAddedEverythingOrNothing) {
  const std::string in = (other_ / "in.db").string();
  write_run(in);
  RunInfo shard = host_run();
  shard.campaign = std::string(32, 'c');
  shard.shard = shard.shards = 1;
  {
    Store store = Store::open(in, Store::Mode::update);
    store.end_run(store.begin_run(shard), "complete");
  }
  std::set<int64_t> runs;
  kill_at_every_change(
      [&] { write_run(path_); },
      [&] {
        Store out = Store::open(path_, Store::Mode::update);
        merge_stores(out, {in}, {});
      },
      [&](Store& store) { runs.insert(store.database().integer("SELECT count(*) FROM run")); });
  EXPECT_EQ(runs, (std::set<int64_t>{1})) << "until its last change";
  Store merged = Store::open(path_, Store::Mode::read);
  EXPECT_EQ(merged.database().integer("SELECT count(*) FROM run"), 3) << "and behind it";
}

TEST_F(StoreKilledTest, AJournalOfGarbageLocksNothingOut) {
  write_run(path_);
  std::ofstream(path_ + "-journal") << "this is no journal, and longer than the head of one";
  for (auto mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    const std::string path = copy();
    ASSERT_EQ(refusal(path, mode), "accepted");
    Store store = Store::open(path, mode);
    EXPECT_EQ(store.levels(1).size(), 1u);
  }
}

}  // namespace
}  // namespace moegate::test
