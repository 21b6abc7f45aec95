// SPDX-License-Identifier: Apache-2.0
// What processes ran with, in the store: kept once, merged, and absent from stores of version 1.
#include <algorithm>

#include "harness/store/merge.h"
#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

class StoredEnvironments : public StoreFixture {
 protected:
  /// A run of a process for each environment.
  static int64_t add_run(Store& store, const std::vector<EnvironmentItems>& environments) {
    const int64_t run = store.begin_run(host_run());
    for (int round = 0; const EnvironmentItems& environment : environments)
      store.set_environment(store.begin_process(run, round++, 1), environment);
    store.end_run(run, "complete");
    return run;
  }
  static constexpr const char* kKnown = "SELECT count(*) FROM environment";

  const EnvironmentItems old_ = {{"package", "triton", "3.5.1", "a"}};
  const EnvironmentItems new_ = {{"package", "triton", "3.6.0", "b"}};
  const EnvironmentItems more_ = in_order({{"package", "triton", "3.6.0", "b"},
                                           {.kind = "variable",
                                            .name = "TRITON_CACHE_DIR",
                                            .value = "/x",
                                            .digest = "",
                                            .counts = false}});
};

TEST_F(StoredEnvironments, IsKeptOnceAndKnownByRun) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t first = add_run(store, {old_, old_, {}});
  const int64_t second = add_run(store, {new_, more_});
  EXPECT_EQ(store.environment(first), old_);
  EXPECT_EQ(store.environment(second), more_) << "of all its processes";
  EXPECT_EQ(store.database().integer(kKnown), 3);
  EXPECT_EQ(store.database().integer("SELECT count(DISTINCT hash) FROM environment"), 2)
      << "what does not count makes no other environment";
  EnvironmentItems stated = more_;
  stated.back().counts = true;
  EXPECT_EQ(store.environment(add_run(store, {stated})), stated) << "the user named the variable";
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM process WHERE environment_id = 0"), 1);
}

TEST_F(StoredEnvironments, ComesAlongWithAMerge) {
  const std::string a = (dir_ / "a.db").string(), b = (dir_ / "b.db").string();
  {
    Store first = Store::open(a, Store::Mode::write), second = Store::open(b, Store::Mode::write);
    add_run(first, {new_});
    add_run(second, {old_, {}});
    add_run(second, {new_});
  }
  merge_into(path_, {a, b}, {});
  Store store = Store::open(path_, Store::Mode::read);
  // Runs that started at the same time are numbered by their uuids.
  std::vector<EnvironmentItems> all;
  for (const int64_t run : {1, 2, 3}) all.push_back(store.environment(run));
  EXPECT_EQ(std::ranges::count(all, new_), 2);
  EXPECT_EQ(std::ranges::count(all, old_), 1);
  EXPECT_EQ(store.database().integer(kKnown), 2);
}

TEST_F(StoredEnvironments, AStoreOfVersion1IsConvertedByWhoeverOpensIt) {
  for (const Store::Mode mode : {Store::Mode::read, Store::Mode::update, Store::Mode::write}) {
    std::filesystem::remove(path_);
    write_run(path_);
    Database(path_, SQLITE_OPEN_READWRITE)
        .execute(
            "DROP TABLE environment_item; DROP TABLE environment; "
            "ALTER TABLE process DROP COLUMN environment_id; PRAGMA user_version = 1");
    Store store = Store::open(path_, mode);
    EXPECT_EQ(store.database().integer("PRAGMA user_version"), 2);
    EXPECT_EQ(store.levels(1).size(), 1u) << "what it had";
    EXPECT_TRUE(store.environment(1).empty());
  }
  Store store = Store::open(path_, Store::Mode::write);
  EXPECT_EQ(store.environment(add_run(store, {old_})), old_);
}

TEST_F(StoredEnvironments, AChangedStoreOfVersion1IsRefusedAndStaysAsItWas) {
  write_run(path_);
  Database(path_, SQLITE_OPEN_READWRITE)
      .execute(
          "DROP TABLE environment_item; DROP TABLE environment; ALTER TABLE process DROP COLUMN "
          "environment_id; PRAGMA user_version = 1; CREATE TRIGGER planted AFTER INSERT ON run "
          "BEGIN SELECT 1; END");
  EXPECT_TRUE(contains(refusal(path_, Store::Mode::write), "unknown object: trigger 'planted'"));
  Database db(path_, SQLITE_OPEN_READONLY);
  EXPECT_EQ(db.integer("PRAGMA user_version"), 1);
}

}  // namespace
}  // namespace moegate::test
