// SPDX-License-Identifier: Apache-2.0
#include "harness/store/store.h"

#include <cmath>
#include <limits>

#include "harness/base/test_fixture.h"
#include "harness/store/query_report.h"
#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

using StoreTest = StoreFixture;

Case some_case(const std::string& tokens = "8") {
  return {"tiny", "gpt-oss-120b", "topk_sort", {{"tokens", tokens}, {"topk", "4"}}, {}};
}

RunInfo some_run(const std::string& label = "nightly") {
  RunInfo info;
  info.label = label;
  info.device = {Backend::cuda, "NVIDIA H200",      "nvidia-h200", "GPU-1",  132,
                 60 << 20,      int64_t{150} << 30, 227 << 10,     "580.159"};
  info.protocol = 1;
  info.timer = "cupti";
  info.flush = "read";
  info.dirty = true;
  info.operators = {{"topk_sort", "", {{"chain3"}}}};
  info.tags = {{"why", "test"}};
  return info;
}

Accuracy some_accuracy(const std::string& output, double rel_l2) {
  Accuracy a;
  a.output = output;
  a.ok = true;
  a.rel_l2 = rel_l2;
  return a;
}

KernelRow some_kernel(const std::string& name) {
  KernelRow k;
  k.name = name;
  k.grid = "132x1x1";
  k.ns = 900;
  return k;
}

Result some_result(const std::string& variant = "chain3", double span_ns = 5000) {
  Result r;
  r.variant = variant;
  r.timer = "cupti";
  r.judged = Judged::span;
  r.tick_ns = 32;
  r.samples = 3;
  r.slow = 7;
  r.flags = kSlowClock;
  r.span_ns = r.median_ns = span_ns;
  r.ratio = 1.5;
  r.accuracy = {some_accuracy("weights", 1e-6)};
  r.kernels = {some_kernel("a"), some_kernel("b")};
  r.metrics = {{"core_wait", "share", 0.25}};
  r.spans_ns = {5000.f, 5001.5f, 4999.f};
  return r;
}

TEST_F(StoreTest, KeepsEverythingThatAResultSays) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(some_run());
  const int64_t process = store.begin_process(run, 2, 4711);
  Result r = some_result();
  r.accuracy.push_back(some_accuracy("broken", std::numeric_limits<double>::quiet_NaN()));
  store.add_result(process, some_case(), {1, 2, 3}, {{"active_experts", 57}}, r);
  store.end_process(process, "sw_power_cap");
  store.end_run(run, "complete");

  const RunInfo info = store.run_info(run);
  EXPECT_EQ(info.status, "complete");
  EXPECT_TRUE(info.dirty);
  EXPECT_EQ(info.device.klass, "nvidia-h200");
  EXPECT_EQ(info.device.backend, Backend::cuda);
  EXPECT_EQ(info.device.memory_bytes, int64_t{150} << 30);
  EXPECT_EQ(info.tags.at("why"), "test");
  EXPECT_EQ(info.started.size(), 20u);  // 2026-11-03T12:34:56Z

  const auto levels = store.levels(run);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0].key, some_case().key());
  EXPECT_EQ(levels[0].suite, "tiny");
  EXPECT_EQ(levels[0].round, 2);
  const Result& back = levels[0].result;
  EXPECT_EQ(back.status, Status::ok);
  EXPECT_EQ(back.span_ns, 5000);
  EXPECT_EQ(back.slow, 7);
  EXPECT_EQ(back.flags, kSlowClock);
  ASSERT_EQ(back.accuracy.size(), 2u);
  EXPECT_EQ(back.accuracy[0].output, "broken");
  EXPECT_TRUE(std::isnan(back.accuracy[0].rel_l2));
  EXPECT_EQ(back.accuracy[1].rel_l2, 1e-6);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM kernel"), 2);
  add_sql_functions(store.database());
  EXPECT_EQ(store.database().integer("SELECT length(spans) FROM sample"), 12);
  EXPECT_EQ(
      store.database().integer("SELECT json_extract(facts, '$.active_experts') FROM run_case"), 57);
}

TEST_F(StoreTest, AProcessHasOneResultOfACaseAndVariant) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t process = store.begin_process(store.begin_run(some_run()), 0, 1);
  store.add_result(process, some_case(), {}, {}, some_result());
  EXPECT_THROW(store.add_result(process, some_case(), {}, {}, some_result()), Error);
}

TEST_F(StoreTest, ACrashDoesNotEraseWhatIsKnownOfTheCase) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(some_run());
  store.add_result(store.begin_process(run, 0, 1), some_case(), {1, 2, 3}, {{"active_experts", 57}},
                   some_result());
  Result crashed;
  crashed.variant = "chain3";
  crashed.status = Status::crashed;
  store.add_result(store.begin_process(run, 1, 2), some_case(), {}, {}, crashed);
  EXPECT_EQ(store.database().integer("SELECT flops FROM bench_case"), 1) << "cost is kept";
  EXPECT_EQ(
      store.database().integer("SELECT json_extract(facts, '$.active_experts') FROM run_case"), 57);
  EXPECT_EQ(store.done(run).count({1, some_case().key(), "chain3"}), 1u);
}

TEST_F(StoreTest, AResultIsStoredWholeOrNotAtAll) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t process = store.begin_process(store.begin_run(some_run()), 0, 1);
  Result r = some_result();
  r.accuracy.push_back(r.accuracy[0]);  // violates the primary key after the result was inserted
  EXPECT_THROW(store.add_result(process, some_case(), {}, {}, r), Error);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM result"), 0);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM bench_case"), 0);
}

TEST_F(StoreTest, AMeasuredResultNeedsSamples) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t process = store.begin_process(store.begin_run(some_run()), 0, 1);
  Result r = some_result();
  r.span_ns = 0;
  EXPECT_THROW(store.add_result(process, some_case(), {}, {}, r), Error);
}

TEST_F(StoreTest, MarksSuspectWarmInEveryProcessOfTheRun) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(some_run());
  for (int round = 0; round < 2; ++round) {
    const int64_t process = store.begin_process(run, round, 1);
    store.add_result(process, some_case(), {}, {}, some_result("chain3"));
    store.add_result(process, some_case(), {}, {}, some_result("other"));
  }
  store.mark_suspect_warm(run, some_case().key(), "chain3");
  for (const Level& l : store.levels(run)) {
    EXPECT_EQ(l.result.suspect_warm, l.result.variant == "chain3");
  }
}

TEST_F(StoreTest, FindsRuns) {
  Store store = Store::open(path_, Store::Mode::write);
  const std::string why = refusal_of([&] { store.find_run("latest"); });
  EXPECT_NE(why.find("moegate run"), std::string::npos) << why;
  const int64_t a = store.begin_run(some_run("a"));
  const int64_t b = store.begin_run(some_run("a"));
  const int64_t c = store.begin_run(some_run("7"));
  store.end_run(a, "complete");
  store.end_run(b, "interrupted");
  EXPECT_EQ(store.find_run("latest"), b) << "c still runs";
  RunInfo repeat = some_run("again");
  repeat.tags[kRepeatTag] = "1";
  const int64_t d = store.begin_run(repeat);
  store.end_run(d, "interrupted");
  EXPECT_EQ(store.find_run("latest"), b) << "d repeats a row of a";
  EXPECT_EQ(store.find_run("again"), d);
  RunInfo counted = some_run("counted");
  counted.task = "counters";
  const int64_t e = store.begin_run(counted);
  store.end_run(e, "complete");
  EXPECT_EQ(store.find_run("latest"), b) << "e measured no time";
  EXPECT_EQ(store.find_run("latest", "counters"), e);
  EXPECT_EQ(store.find_resumable("latest"), c);
  EXPECT_EQ(store.find_resumable("again"), d);
  EXPECT_EQ(store.find_run("a"), b);
  EXPECT_EQ(store.find_run("1"), a);
  EXPECT_EQ(store.find_run("7"), c) << "no run 7, so a label";
  for (const char* which : {"zzz", "", "99", "99999999999999999999999"}) {
    const std::string why = refusal_of([&] { store.find_run(which); });
    EXPECT_NE(why.find("2 'a' (interrupted)"), std::string::npos) << why;
  }
}

TEST_F(StoreTest, KeepsCeilings) {
  Store store = Store::open(path_, Store::Mode::write);
  const DeviceFacts device = some_run().device;
  EXPECT_TRUE(store.ceilings(device).empty());
  store.set_ceilings(device, {{"read_bytes_per_s", 4.2e12}, {"bf16_flops", 7e14}});
  store.set_ceilings(device, {{"read_bytes_per_s", 4.3e12}});
  EXPECT_EQ(store.ceilings(device).at("read_bytes_per_s"), 4.3e12);
  EXPECT_EQ(store.ceilings(device).size(), 2u);
}

TEST_F(StoreTest, OpensAgainWithoutChangingAnything) {
  Store::open(path_, Store::Mode::write).begin_run(some_run());
  const std::string before = bytes_of(path_);
  { Store::open(path_, Store::Mode::read).levels(1); }
  EXPECT_EQ(bytes_of(path_), before);
  EXPECT_EQ(Store::open(path_, Store::Mode::update).begin_run(some_run()), 2);
  EXPECT_EQ(Store::open(path_, Store::Mode::write).begin_run(some_run()), 3);
  EXPECT_THROW(Store::open(path_, Store::Mode::read).begin_run(some_run()), Error);
}

TEST_F(StoreTest, SetsWhatProtectsTheData) {
  Store store = Store::open(path_, Store::Mode::write);
  Database& db = store.database();
  EXPECT_EQ(db.integer("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(db.integer("PRAGMA trusted_schema"), 0);
  EXPECT_EQ(db.integer("PRAGMA application_id"), 0x4D6F4547);
  EXPECT_EQ(db.integer("PRAGMA user_version"), 2);
  Statement mode(db, "PRAGMA journal_mode");
  ASSERT_TRUE(mode.step());
  EXPECT_EQ(mode.text(0), sqlite3_libversion_number() >= 3051003 ? "wal" : "delete");
}

TEST_F(StoreTest, ADeletedRunTakesItsRowsAlong) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t process = store.begin_process(store.begin_run(some_run()), 0, 1);
  store.add_result(process, some_case(), {}, {}, some_result());
  store.database().execute("DELETE FROM run");
  for (const char* table :
       {"process", "result", "accuracy", "kernel", "sample", "run_case", "metric", "operator",
        "before", "launch", "metric_value", "row_level"}) {
    EXPECT_EQ(store.database().integer(std::string("SELECT count(*) FROM ") + table), 0) << table;
  }
}

TEST_F(StoreTest, WhatRepeatsIsStoredOnce) {
  Store store = Store::open(path_, Store::Mode::write);
  Database& db = store.database();
  const int64_t run = store.begin_run(some_run());
  for (int round = 0; round < 3; ++round) {
    Result result = some_result();
    if (round == 2) result.accuracy[0].rel_l2 += 1e-12;  // as little as a double tells apart
    store.add_result(store.begin_process(run, round, 1), some_case(), {}, {}, result);
  }
  EXPECT_EQ(db.integer("SELECT count(*) FROM kernel"), 6);
  EXPECT_EQ(db.integer("SELECT count(*) FROM launch_shape"), 2);
  EXPECT_EQ(db.integer("SELECT count(*) FROM verification"), 2);
  EXPECT_EQ(db.integer("SELECT count(*) FROM accuracy"), 3);
  const auto levels = store.levels(run);
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[1].result.accuracy[0].rel_l2, some_result().accuracy[0].rel_l2);
  EXPECT_EQ(levels[2].result.accuracy[0].rel_l2, some_result().accuracy[0].rel_l2 + 1e-12);
}

TEST_F(StoreTest, TheEndOfARunCountsNoSamples) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(some_run());
  store.add_result(store.begin_process(run, 0, 1), some_case(), {}, {}, some_result());
  store.end_run(run, "complete");
  const auto known = [&](const char* table) {
    return store.database().integer(
        fmt::format("SELECT count(*) FROM sqlite_stat1 WHERE tbl = '{}'", table));
  };
  EXPECT_EQ(known("sample"), 0) << "no index: all of it would be read";
  EXPECT_GT(known("result"), 0);
  EXPECT_GT(known("launch"), 0);
}

TEST_F(StoreTest, AProcessCountsItsResults) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t process = store.begin_process(store.begin_run(some_run()), 0, 1);
  for (const char* variant : {"a", "b"}) {
    Result result = some_result();
    result.variant = variant;
    result.wall_s = 0.5;
    store.add_result(process, some_case(), {}, {}, result);
  }
  Database& db = store.database();
  EXPECT_EQ(db.integer("SELECT results FROM process"), 2);
  EXPECT_EQ(db.integer("SELECT wall_s = 1 FROM process"), 1);
  const int64_t bytes = db.integer("SELECT bytes FROM process");
  EXPECT_EQ(bytes % db.integer("PRAGMA page_size"), 0) << "the store grows by pages";
}

TEST_F(StoreTest, TwoWritersShareOneStore) {
  Store one = Store::open(path_, Store::Mode::write);
  Store two = Store::open(path_, Store::Mode::write);
  EXPECT_EQ(one.begin_run(some_run()), 1);
  EXPECT_EQ(two.begin_run(some_run()), 2);
  EXPECT_EQ(one.database().integer("SELECT count(*) FROM device"), 1);
}

}  // namespace
}  // namespace moegate::test
