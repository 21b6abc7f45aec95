// SPDX-License-Identifier: Apache-2.0
// The reports of runs that counted.
#include "harness/store/report_fixture.h"

namespace moegate::test {
namespace {

class QueryCountersTest : public ReportTest {};

TEST_F(QueryCountersTest, CountersAreRatesOfTheChipsPeaks) {
  add_counter_run();
  const Table t = report("counters");
  ASSERT_EQ(t.rows.size(), 8u);  // four launches, and a kernel of each
  EXPECT_EQ(at(t, 0, "variant"), "cold");
  EXPECT_EQ(at(t, 0, "of"), "launch");
  EXPECT_EQ(at(t, 0, "busy us"), "5");  // 10000 cycles at 2 GHz
  EXPECT_EQ(at(t, 0, "DRAM read MB"), "16.1");
  EXPECT_EQ(at(t, 0, "x compulsory"), "1.006");
  EXPECT_EQ(at(t, 0, "DRAM %"), "80.5");  // 16.1 MB in 5 us, of 4 TB/s
  EXPECT_EQ(at(t, 0, "bound by"), "DRAM");
  EXPECT_EQ(at(t, 0, "first stall"), "barrier 30 %");  // selected is no waiting
  EXPECT_EQ(at(t, 1, "of"), "first");
  EXPECT_EQ(at(t, 1, "x compulsory"), "");  // of a part nobody knows what it must read
}

TEST_F(QueryCountersTest, ColdnessSaysWhyALaunchDoesNotReadWhatItMust) {
  add_counter_run();
  EXPECT_EQ(task_of_report(find_report("coldness")), "counters");
  EXPECT_EQ(task_of_report(find_report("latency")), "measure");
  const Table t = report("coldness");
  ASSERT_EQ(t.rows.size(), 4u);
  EXPECT_EQ(at(t, 0, "verdict"), "cold");
  EXPECT_EQ(at(t, 1, "variant"), "leaves_out");
  EXPECT_NE(at(t, 1, "verdict").find("leaves inputs out"), std::string::npos);
  EXPECT_EQ(at(t, 2, "verdict"), "SUSPECT WARM: 50.0 % came from the cache");
  EXPECT_EQ(at(t, 3, "verdict"), "reads 2.0 times, and the inputs do not fit in L2");
}

TEST_F(QueryCountersTest, TheRooflineHasWhatWasCountedByTheSameProgram) {
  add_run(Backend::cuda);
  add_counter_run();
  {
    Store store = Store::open(db_, Store::Mode::update);
    store.database().execute(
        "UPDATE result SET variant = 'chain3', case_id = (SELECT min(case_id) FROM result) WHERE "
        "variant = 'cold'; UPDATE run SET status = 'complete', program = 'p' WHERE run_id = 2");
  }
  EXPECT_EQ(at(report("roofline", 1), 0, "DRAM MB"), "") << "another program's";
  {
    Store store = Store::open(db_, Store::Mode::update);
    store.database().execute("UPDATE run SET program = 'p'");
  }
  const Table t = report("roofline", 1);
  int counted = 0;
  for (size_t row = 0; row < t.rows.size(); ++row) counted += at(t, row, "DRAM MB") == "16.1";
  EXPECT_EQ(counted, 1);
}

// The report `stalls`.

class QueryStallsTest : public ReportTest {
 protected:
  /// A result of a process with 1000 samples.
  void add_stalled(Store& store, int64_t process, const std::string& variant,
                   std::vector<StallRow> stalls) {
    Result r;
    r.variant = variant;
    for (const char* name : {"route", "gemm<64>"}) r.kernels.emplace_back().name = name;
    r.stalls = std::move(stalls);
    r.metrics = {{.name = "pc_samples", .unit = "samples", .value = 1000},
                 {.name = "pc_samples", .unit = "samples", .value = 900, .ordinal = 1}};
    store.add_result(process, {"s", "gpt", "moe_gemm", {{"tokens", "8"}}, {}}, {}, {}, r);
  }
  int64_t begin(Store& store) {
    RunInfo run = info(Backend::cuda);
    run.task = "stalls";
    return store.begin_run(run);
  }
};

TEST_F(QueryStallsTest, TheHottestInstructionIsFirstWithItsMostFrequentReason) {
  Store store = Store::open(db_, Store::Mode::write);
  const int64_t run = begin(store);
  for (const int64_t process : {store.begin_process(run, 0, 1), store.begin_process(run, 1, 2)}) {
    add_stalled(store, process, "fused",
                {{1, 0x120, "BAR.SYNC 0x0", "gemm.cu:12", "barrier", 30},
                 {1, 0x120, "BAR.SYNC 0x0", "gemm.cu:12", "wait", 10},
                 {1, 0x120, "BAR.SYNC 0x0", "gemm.cu:12", "selected", 500},
                 {0, 0x40, "LDG.E R2, [R4.64]", "", "long_scoreboard", 39}});
  }
  const Table t = report("stalls");
  ASSERT_EQ(t.rows.size(), 2u);
  const std::map<std::string, std::string> first = {{"case", "moe_gemm/tokens=8"},
                                                    {"variant", "fused"},
                                                    {"#", "1"},
                                                    {"kernel", "gemm<64>"},
                                                    {"at", "0120"},
                                                    {"instruction", "BAR.SYNC 0x0"},
                                                    {"line", "gemm.cu:12"},
                                                    {"reason", "barrier"},
                                                    {"of these %", "75"},
                                                    {"samples", "80"},
                                                    {"%", "4"}};
  for (const auto& [column, text] : first) EXPECT_EQ(at(t, 0, column), text) << column;
  EXPECT_EQ(at(t, 1, "kernel"), "route");
  EXPECT_EQ(at(t, 1, "samples"), "78");
  EXPECT_EQ(at(t, 1, "%"), "3.9");
}

TEST_F(QueryStallsTest, TenOfAVariant) {
  Store store = Store::open(db_, Store::Mode::write);
  const int64_t run = begin(store), process = store.begin_process(run, 0, 1);
  for (const char* variant : {"fused", "plain"}) {
    std::vector<StallRow> stalls;
    for (int i = 0; i < 12; ++i) stalls.push_back({1, 16 * i, "NOP", "", "wait", 100 + i});
    add_stalled(store, process, variant, std::move(stalls));
  }
  const Table t = report("stalls");
  ASSERT_EQ(t.rows.size(), 20u);
  EXPECT_EQ(at(t, 0, "at"), "00b0");
  EXPECT_EQ(at(t, 9, "at"), "0020");
  EXPECT_EQ(at(t, 10, "variant"), "plain");
}

}  // namespace
}  // namespace moegate::test
