// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>

#include "harness/base/test_fixture.h"
#include "harness/store/content_fixture.h"
#include "harness/store/level_walk.h"
#include "harness/store/store_fixture.h"
#include "harness/values/fields_fixture.h"

namespace moegate::test {
namespace {

const std::string kCampaign(32, 'c');

using Paths = std::vector<std::string>;

class MergeTest : public StoreFixture {
 protected:
  std::string at(const std::string& name) const { return (dir_ / (name + ".db")).string(); }

  static RunInfo shard_run(int shard, int shards) {
    RunInfo info = host_run();
    info.campaign = kCampaign;
    info.shard = shard;
    info.shards = shards;
    info.options = fmt::format(
        R"({{"filtered":true,"narrowed":false,"shard":{},"shards":{},"suites":["tiny"]}})",
        shard - 1, shards);
    info.device.uuid = fmt::format("GPU-{}", shard);
    info.host = fmt::format("node{}", shard);
    info.command = fmt::format("moegate run --shard {}/{}", shard, shards);
    info.tags = {{"of", "all"}, {"node", info.host}};
    info.operators = {{.name = "topk_sort", .yardstick = "chain", .before = {{"chain", "*"}}}};
    return info;
  }

  /// One case, whose number is the run's shard, in two rounds. Returns the file.
  std::string write(const std::string& name, const RunInfo& info,
                    const std::string& status = "complete", int case_number = 0) const {
    Store store = Store::open(at(name), Store::Mode::write);
    const int64_t run = store.begin_run(info);
    const std::string tokens = std::to_string(case_number > 0 ? case_number : info.shard);
    for (int round = 0; round < 2; ++round) {
      const int64_t process = store.begin_process(run, round, 1);
      store.add_result(process, {"tiny", "gpt", "topk_sort", {{"tokens", tokens}}, {}}, {1, 2, 3},
                       {{"active_experts", 57}}, whole_result());
    }
    if (status == "complete") {
      const Case c{"tiny", "gpt", "topk_sort", {{"tokens", tokens}}, {}};
      write_row_levels(store, run, {{.key = c.key(), .variant = whole_result().variant}});
    }
    if (status != "running") store.end_run(run, status);
    return at(name);
  }

  Paths write_shards(int shards) const {
    Paths paths;
    for (int k = 1; k <= shards; ++k) {
      paths.push_back(write(fmt::format("shard{}", k), shard_run(k, shards)));
    }
    return paths;
  }

  Merged merge(const std::string& out, const Paths& in, bool leave_unfinished = false) const {
    Store store = Store::open(at(out), Store::Mode::write);
    return merge_stores(store, in, {leave_unfinished});
  }
  std::string content(const std::string& name) const {
    Database db(at(name), SQLITE_OPEN_READWRITE);
    return content_of(db);
  }
  void alter(const std::string& path, const std::string& sql) const {
    Database(path, SQLITE_OPEN_READWRITE).execute(sql);
  }
  /// What merging them is refused with; "accepted" where it is not.
  std::string refused(const std::string& out, const Paths& in, Exit exit = Exit::usage) const {
    return refusal_of([&] { merge(out, in); }, exit);
  }
};

TEST_F(MergeTest, EverythingOfARunComesAlong) {
  {
    Store store = Store::open(at("in"), Store::Mode::write);
    auto info = Distinct().make<RunInfo>();
    info.uuid = info.campaign = std::string(32, 'a');
    info.shard = info.shards = info.protocol = 0;
    info.flush = "read";
    info.task = "measure";
    const int64_t run = store.begin_run(info);
    auto result = Distinct().make<Result>();
    result.status = Status::noisy;
    const Case c{"tiny", "", "op", {{"n", "1"}}, {}};
    const int64_t process = store.begin_process(run, 0, 1);
    store.add_result(process, c, {1, 2, 3}, {{"fact", 1}}, result);
    store.set_environment(process, {Distinct().make<EnvironmentItem>()});
    write_row_levels(store, run, {{.key = c.key(), .variant = result.variant}});
    store.set_ceilings(info.device, {{"read_bytes_per_s", 5}});
    store.end_run(run, "complete");
  }
  alter(at("in"),
        "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, blind, family, "
        "waiver, why) VALUES (1, 'b', 's', 'k', 'v', 'pass', 1, 0, 1, '', '');"
        "INSERT INTO calibration VALUES (1, 0.02, 5, 9, 3, 1, 0.02, 0.01, 1, 0.01, 0)");
  write("out", host_run(), "complete", 7);  // so that rows get other numbers
  const Merged merged = merge("out", {at("in")});
  EXPECT_EQ(merged.added, 1);
  EXPECT_EQ(merge("out", {at("in")}).known, 1);
  Database in(at("in"), SQLITE_OPEN_READWRITE);
  const std::string out = content("out");
  std::istringstream lines(content_of(in));
  size_t found = 0;
  for (std::string line; std::getline(lines, line); ++found) {
    EXPECT_NE(out.find(line + "\n"), std::string::npos) << line;
  }
  EXPECT_GT(found, 20u);
  for (const auto& [name, table] : shapes_of(in)) {
    if (name == "campaign" || name == "shard") continue;
    EXPECT_GT(in.integer("SELECT count(*) FROM " + name), 0) << name << " is not in this test";
  }
}

TEST_F(MergeTest, ARowThatIsNotWhatWasStoredIsRefused) {
  const Paths shards = write_shards(2);
  alter(shards[1], "UPDATE result SET ratio = 0.5 WHERE result_id = 2");
  const std::string why = refused("out", shards, Exit::store);
  EXPECT_TRUE(
      contains(why, shards[1] + ": is damaged: row 2 of run 1 (variant chain): its numbers"))
      << why;
  alter(shards[1], "UPDATE result SET checksum = 0");
  EXPECT_EQ(refused("out", shards), "accepted") << "whoever inserted them made none";
  alter(shards[0], "UPDATE verified_output SET max_abs = 0.5");
  EXPECT_TRUE(contains(refused("new", shards, Exit::store), "its accuracy and seeds are not"));
}

TEST_F(MergeTest, ARowThatAStoreForbidsIsRefused) {
  const Paths shards = write_shards(2);
  const auto refused_after = [&](const std::string& sql) {
    alter(shards[1], "PRAGMA ignore_check_constraints = 1; BEGIN;" + sql);
    return refused("out", shards, Exit::store);
  };
  const std::string unknown = refused_after(
      "UPDATE result SET status = 'odd', checksum = 0, verified_checksum = 0; COMMIT");
  EXPECT_TRUE(contains(unknown, "'odd'")) << unknown;
  const std::string untimed = refused_after("UPDATE result SET status = 'ok', samples = 0; COMMIT");
  EXPECT_TRUE(contains(untimed, "is timed without a sample")) << untimed;
  const std::string dirty =
      refused_after("UPDATE result SET samples = 3; UPDATE run SET dirty = 2; COMMIT");
  EXPECT_TRUE(contains(dirty, "is damaged: table run: CHECK constraint failed")) << dirty;
}

TEST_F(MergeTest, TheShardsOfACampaignBecomeOneRun) {
  const Merged merged = merge("out", write_shards(3));
  EXPECT_EQ(merged.added, 3);
  ASSERT_EQ(merged.campaigns.size(), 1u);
  Store store = Store::open(at("out"), Store::Mode::read);
  const int64_t run = merged.campaigns[0];
  EXPECT_EQ(store.find_run("latest"), run);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM run"), 1);
  const RunInfo info = store.run_info(run);
  EXPECT_EQ(info.uuid, kCampaign);
  EXPECT_EQ(info.status, "complete");
  EXPECT_EQ(info.rounds, 2);
  EXPECT_EQ(info.device.uuid, "several:GPU-1,GPU-2,GPU-3");
  EXPECT_FALSE(same_device(info.device.uuid, info.device.uuid));
  EXPECT_EQ(info.host, "node1, node2, node3");
  EXPECT_EQ(info.tags, (std::map<std::string, std::string>{{"of", "all"}})) << "what all say";
  EXPECT_FALSE(is_partial(info));
  EXPECT_TRUE(store.absent_shards(info).empty());
  EXPECT_EQ(store.levels(run, /*launches=*/true).size(), 6u);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM shard JOIN device USING (device_id) "
                                     "JOIN process USING (run_id, shard) WHERE device.uuid = "
                                     "'GPU-' || shard"),
            6)
      << "every process has its device";
}

TEST_F(MergeTest, NeitherOrderNorRepetitionMakesADifference) {
  Paths paths = write_shards(3);
  paths.push_back(write("night", host_run(), "complete", 9));
  alter(paths[0], "UPDATE bench_case SET flops = 7");
  merge("all", paths);
  const std::string wanted = content("all");
  std::ranges::sort(paths);
  int n = 0;
  do {
    const std::string out = fmt::format("out{}", ++n);
    for (const std::string& path : paths) merge(out, {path});
    EXPECT_EQ(content(out), wanted) << fmt::format("{}", n);
  } while (std::ranges::next_permutation(paths).found);
  EXPECT_EQ(n, 24);
  const Merged again = merge("all", paths);
  EXPECT_EQ(again.added, 0);
  EXPECT_EQ(again.known, 4);
  EXPECT_EQ(content("all"), wanted) << "once more";
  // Merges of merges, and a shard in both.
  merge("a", {at("shard1"), at("shard2")});
  merge("b", {at("night"), at("shard2"), at("shard3")});
  merge("ab", {at("b"), at("a")});
  EXPECT_EQ(content("ab"), wanted);
}

TEST_F(MergeTest, OfTwoVerdictsOneStaysWhateverComesFirst) {
  write("a", host_run(), "complete", 1);
  std::filesystem::copy(at("a"), at("b"));
  const auto judge = [&](const char* name, const char* outcome, const char* mde) {
    alter(
        at(name),
        fmt::format("INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, "
                    "mde, blind, family, waiver, why) VALUES (1, 'b', 's', 'k', 'v', '{}', 1, {}, "
                    "0, 1, '', '')",
                    outcome, mde));
  };
  judge("a", "pass", "NULL");
  judge("b", "pass", "0.01");
  merge("ab", {at("a")});
  merge("ab", {at("b")});
  merge("ba", {at("b")});
  merge("ba", {at("a")});
  EXPECT_EQ(content("ab"), content("ba"));
}

TEST_F(MergeTest, AnAbsentShardIsKnownAndMayComeLater) {
  const Paths paths = write_shards(3);
  merge("all", paths);
  const Merged merged = merge("out", {paths[2]});
  {
    Store store = Store::open(at("out"), Store::Mode::read);
    const RunInfo info = store.run_info(merged.campaigns.at(0));
    EXPECT_EQ(info.status, "interrupted");
    EXPECT_TRUE(is_partial(info));
    EXPECT_EQ(store.absent_shards(info), (std::vector<int>{1, 2}));
    EXPECT_THROW(store.find_resumable("latest"), Error) << "its shards are";
    EXPECT_THROW(store.find_resumable(std::to_string(info.id)), Error);
  }
  merge("out", {paths[0]});
  merge("out", {paths[1]});
  EXPECT_EQ(content("out"), content("all"));
}

TEST_F(MergeTest, RunsThatHaveNotEndedAreRefusedOrLeftOut) {
  const std::string half = write("half", shard_run(2, 2), "interrupted");
  const std::string whole = write("whole", shard_run(1, 2));
  const std::string why = refused("out", {whole, half});
  for (const std::string& part : {half + ": run 1 'nightly' (shard 2 of 2) is interrupted",
                                  "`moegate run --resume 1 --db " + half + "` finishes it",
                                  std::string("--leave-unfinished")}) {
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }
  EXPECT_EQ(content("out"), "") << "nothing of the other either";
  const Merged merged = merge("out", {whole, half}, true);
  ASSERT_EQ(merged.notes.size(), 1u);
  EXPECT_NE(merged.notes[0].find(half), std::string::npos) << merged.notes[0];
  // A shard that began anew elsewhere is no reason to refuse what it had begun with.
  const std::string anew = write("anew", shard_run(2, 2));
  EXPECT_EQ(merge("out", {half, anew}).notes.size(), 1u);
  Store store = Store::open(at("out"), Store::Mode::read);
  EXPECT_EQ(store.run_info(1).status, "complete");
  EXPECT_NE(refused("other", {}, Exit::coverage), "accepted");
}

TEST_F(MergeTest, WhatDoesNotBelongTogetherIsRefused) {
  RunInfo other = host_run();
  other.protocol = 2;
  const std::string first = write("first", shard_run(1, 2));
  const std::string of_other_protocol = write("protocol", other, "complete", 1);
  merge("out", {first});
  const std::string before = content("out");
  EXPECT_NE(refused("out", {of_other_protocol})
                .find(of_other_protocol + ": run 1 'nightly' has protocol 2, and run 1 of"),
            std::string::npos);
  EXPECT_NE(refused("new", {first, of_other_protocol}), "accepted");
  EXPECT_NE(refused("out", {write("twice", shard_run(1, 2))}).find("measured twice"),
            std::string::npos);
  RunInfo filtered = shard_run(2, 2);
  filtered.options.replace(filtered.options.find("tiny"), 4, "huge");
  EXPECT_NE(refused("out", {write("options", filtered)}).find("set of options"), std::string::npos);
  EXPECT_NE(refused("out", {write("three", shard_run(2, 3))}).find("number of shards is '3'"),
            std::string::npos);
  EXPECT_NE(refused("out", {at("out")}).find("both"), std::string::npos);
  EXPECT_EQ(content("out"), before);
}

TEST_F(MergeTest, ARunThatWasFinishedInTwoCopiesIsRefused) {
  const std::string one = write("one", shard_run(1, 1), "interrupted");
  const std::string two = at("two");
  std::filesystem::copy(one, two);
  for (const std::string& path : {one, two}) {
    Store store = Store::open(path, Store::Mode::update);
    store.begin_process(1, 2, 1);
    store.end_run(1, "complete");
  }
  merge("out", {one});
  EXPECT_NE(refused("out", {two}).find("finished apart"), std::string::npos);
}

TEST_F(MergeTest, TheNewestMeasurementSaysWhatACaseIs) {
  const auto at_time = [&](const char* name, const char* started, int flops) {
    write(name, host_run(), "complete", 1);
    alter(at(name),
          fmt::format("UPDATE process SET started = '{}'; UPDATE bench_case SET flops = {}",
                      started, flops));
  };
  at_time("old", "2026-01-01T00:00:00Z", 9);
  at_time("new", "2026-02-01T00:00:00Z", 5);
  merge("a", {at("old")});
  merge("a", {at("new")});
  merge("b", {at("new")});
  merge("b", {at("old")});
  for (const char* out : {"a", "b"}) {
    Store store = Store::open(at(out), Store::Mode::read);
    EXPECT_EQ(store.database().integer("SELECT flops FROM bench_case"), 5) << out;
  }
}

// Merges beside other processes that use the same stores, and stores that hold nothing.

/// While it lives, `see` is called before each statement of every connection that is
/// opened meanwhile.
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
  EXPECT_TRUE(contains(merged.notes[0], nothing + " holds no run and is left out"));
  EXPECT_TRUE(contains(merged.notes[1], no_run + " holds no run and is left out"));
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
  std::atomic<bool> begun = false;  // the other thread is watched, too
  {
    Watch watch([&](const std::string&, const std::string& sql) {
      if (!contains(sql, "PRAGMA user_version") || begun.exchange(true)) return;
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
}  // namespace moegate::test
