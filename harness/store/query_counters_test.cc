// SPDX-License-Identifier: Apache-2.0
// The reports of runs that counted.
#include "harness/store/report_fixture.h"

namespace moegate {
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

}  // namespace
}  // namespace moegate
