// SPDX-License-Identifier: Apache-2.0
// The report `stalls`.
#include "harness/store/report_fixture.h"

namespace moegate {
namespace {

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
}  // namespace moegate
