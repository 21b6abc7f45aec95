// SPDX-License-Identifier: Apache-2.0
#include "harness/report/stall_report.h"

#include <gtest/gtest.h>

#include "harness/base/refusal_fixture.h"
#include "harness/base/scratch_fixture.h"
#include "harness/report/page_markdown.h"

namespace moegate {
namespace {

class StallReportTest : public ::testing::Test {
 protected:
  /// One row whose barrier and load were sampled so often, of 100 samples in a process.
  int64_t stalled_run(int64_t barrier, int64_t load, const std::string& task = "stalls",
                      const std::string& variant = "fused", int processes = 1) {
    Store store = Store::open(db_, Store::Mode::write);
    RunInfo info;
    info.label = "x";
    info.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1", 132, 60 << 20, 1, 1,
                   "580"};
    info.flush = "read";
    info.task = task;
    const int64_t run = store.begin_run(info);
    for (int round = 0; round < processes; ++round) {
      Result r;
      r.variant = variant;
      r.kernels.emplace_back().name = "gemm<64>";
      r.stalls = {{0, 0x120, "BAR.SYNC 0x0", "gemm.cu:12", "barrier", barrier},
                  {0, 0x40, "LDG.E R2, [R4.64]", "gemm.cu:9", "long_scoreboard", load}};
      r.metrics = {{.name = "pc_samples", .unit = "samples", .value = 100},
                   {.name = "pc_launches", .unit = "launches", .value = 8}};
      const Case c{"s", "gpt", "moe_gemm", {{"tokens", "8"}}, {}};
      store.add_result(store.begin_process(run, round, round), c, {}, {}, r);
    }
    store.end_run(run, "complete");
    return run;
  }
  std::string text_of(int64_t base, int64_t head, size_t most = 10) {
    Store store = Store::open(db_, Store::Mode::read);
    return to_markdown(stall_page(store, base, head, most), kAnyBytes);
  }
  bool says(const std::string& text, const std::string& what) {
    return text.find(what) != std::string::npos;
  }
  std::string refusal(int64_t base, int64_t head) {
    return refusal_of([&] { text_of(base, head); });
  }

  ScratchFolder dir_;
  const std::string db_ = (dir_ / "r.sqlite").string();
};

TEST_F(StallReportTest, PrintsBaseBesideHead) {
  const int64_t base = stalled_run(10, 30), head = stalled_run(25, 28, "stalls", "fused", 2);
  const std::string text = text_of(base, head);
  EXPECT_TRUE(says(text, "Where warps wait, run 1 'x' beside run 2 'x'")) << text;
  EXPECT_TRUE(says(text, "`moe_gemm/tokens=8` `fused`")) << text;
  EXPECT_TRUE(says(text, "base: 100 samples of 8 launches; head: 200 samples of 16 launches"))
      << text;
  const size_t barrier = text.find("BAR.SYNC"), load = text.find("LDG.E");
  EXPECT_LT(barrier, load) << "the greater change goes first\n" << text;
  const std::string row = text.substr(barrier, load - barrier);
  for (const char* cell : {" 10.0 ", " 25.0 ", " +15.0 ", "0120", "gemm.cu:12"}) {
    EXPECT_TRUE(says(row, cell)) << cell << "\n" << text;
  }
  EXPECT_FALSE(says(text, "have no text")) << text;
  EXPECT_FALSE(says(text_of(base, head, 1), "LDG.E"));
}

TEST_F(StallReportTest, RefusesWhatCannotBeCompared) {
  const int64_t base = stalled_run(1, 2), timed = stalled_run(1, 2, "measure");
  const int64_t other = stalled_run(1, 2, "stalls", "plain");
  EXPECT_TRUE(says(refusal(base, timed), "task 'measure'")) << refusal(base, timed);
  EXPECT_TRUE(says(refusal(base, other), "in common")) << refusal(base, other);
}

}  // namespace
}  // namespace moegate
