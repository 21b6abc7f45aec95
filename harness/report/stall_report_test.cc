// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"
#include "harness/report/page.h"
#include "harness/report/report_fixture.h"

namespace moegate::test {
namespace {

class StallReportTest : public ::testing::Test {
 protected:
  int64_t stalled_run(int64_t barrier, int64_t load, const std::string& task = "stalls",
                      const std::string& variant = "fused", int processes = 1) {
    return add_stalled_run(db_, barrier, load, task, variant, processes);
  }
  std::string text_of(const ExplainQuery& query, size_t most = 10) {
    Store store = Store::open(db_, Store::Mode::read);
    return to_markdown(stall_page(store, query, most), kAnyBytes);
  }
  bool says(const std::string& text, const std::string& what) {
    return text.find(what) != std::string::npos;
  }
  ScratchFolder dir_;
  const std::string db_ = (dir_ / "r.sqlite").string();
};

TEST_F(StallReportTest, PrintsBaseBesideHead) {
  const int64_t base = stalled_run(10, 30), head = stalled_run(25, 28, "stalls", "fused", 2);
  const std::string text = text_of({base, head, "", ""});
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
  EXPECT_FALSE(says(text_of({base, head, "", ""}, 1), "LDG.E"));
}

TEST_F(StallReportTest, OfWhatBothHaveAndIsAskedAbout) {
  const int64_t base = stalled_run(1, 2), head = stalled_run(2, 2);
  const int64_t other = stalled_run(1, 2, "stalls", "plain");
  const auto refusal = [&](const ExplainQuery& query) {
    return refusal_of([&] { text_of(query); }, Exit::coverage);
  };
  EXPECT_TRUE(says(refusal({base, other, "", ""}), "no row in common"));
  EXPECT_EQ(refusal({base, head, "tokens=8$", "^fused$"}), "accepted");
  EXPECT_TRUE(says(refusal({base, head, "tokens=9$", ""}), "matches --filter 'tokens=9$'"));
  EXPECT_TRUE(says(refusal({base, head, "", "plain"}), "--variant 'plain'"));
}

TEST_F(StallReportTest, AreOfTwoRunsOfTheTask) {
  const int64_t stalls = stalled_run(1, 2), timed = stalled_run(1, 2, "measure");
  Store store = Store::open(db_, Store::Mode::read);
  const RunInfo sampled = store.run_info(stalls), measured = store.run_info(timed);
  EXPECT_TRUE(are_of_stalls(sampled, sampled));
  EXPECT_FALSE(are_of_stalls(sampled, measured));
  EXPECT_FALSE(are_of_stalls(measured, sampled));
}

}  // namespace
}  // namespace moegate::test
