// SPDX-License-Identifier: Apache-2.0
// Reports that people write: what they may ask, with which functions, and what they get.
#include <algorithm>
#include <iterator>
#include <vector>

#include "harness/store/report_fixture.h"
#include "harness/store/sqlite.h"

namespace moegate {
namespace {

TEST_F(ReportTest, QuantilesAreOfStoredSpans) {
  add_run(Backend::cuda);
  const auto sql = fs::path(db_).replace_extension(".sql");
  std::ofstream(sql) << "SELECT span_quantile(s, 0) AS a, span_quantile(s, 0.5) AS b, "
                        "span_quantile(s, 1) AS c, span_quantile(x'', 0.5) AS d "
                        "FROM (SELECT x'000040400000803f00000040' AS s)";  // 3, 1, 2
  const Table t = report(sql.string(), 1);
  EXPECT_EQ(at(t, 0, "a"), "1");
  EXPECT_EQ(at(t, 0, "b"), "2");
  EXPECT_EQ(at(t, 0, "c"), "3");
  EXPECT_EQ(at(t, 0, "d"), "");
}

TEST_F(ReportTest, OfOneProcessTheIntervalIsAroundTheLevel) {
  {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(Backend::cuda));
    Result r;
    r.variant = "flat";
    r.spans_ns = std::vector<float>(20, 1000);
    std::fill_n(r.spans_ns.begin(), 6,
                2000.0F);  // the level, 1250, is above all of the median's interval
    r.samples = 20;
    r.span_ns = 1250;
    r.median_ns = r.low_ns = r.high_ns = 1000;
    store.add_result(store.begin_process(run, 0, 1),
                     {"s", "gpt", "topk_sort", {{"tokens", "8"}}, {}}, {}, {}, r);
    store.end_run(run, "complete");
  }
  const Table t = report("latency");
  EXPECT_EQ(at(t, 0, "us"), "1.25");
  EXPECT_EQ(at(t, 0, "from"), "0.97");  // Yuen, by hand: 1250 ± 2.131 x 470 / (0.8 x sqrt(20))
  EXPECT_EQ(at(t, 0, "to"), "1.53");
  EXPECT_EQ(at(report("summary"), 0, "95 % CI"), "0.97–1.53");
  Database(db_, SQLITE_OPEN_READWRITE).execute("DELETE FROM sample");  // as prune does
  EXPECT_EQ(at(report("latency"), 0, "to"), "1");
  EXPECT_EQ(at(report("summary"), 0, "95 % CI"), "1.0–1.0");
}

TEST_F(ReportTest, AReportOnlyReads) {
  add_run(Backend::cuda);
  EXPECT_EQ(refusal("SELECT count(*) AS n FROM run WHERE run_id = :run"), "accepted");
  EXPECT_NE(refusal("DELETE FROM run").find("one SELECT"), std::string::npos);
  EXPECT_NE(refusal("ATTACH '" + (dir_ / "made.db").string() + "' AS x").find("one SELECT"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(dir_ / "made.db"));
  EXPECT_NE(refusal("SELECT 1; SELECT 2").find("more than one"), std::string::npos);
  EXPECT_NE(refusal("SELECT x FROM nowhere").find("own.sql"), std::string::npos);
  EXPECT_NE(refusal("").find("own.sql"), std::string::npos);
  EXPECT_NE(refusal("SELECT load_extension('x')"), "accepted");
}

TEST_F(ReportTest, NullIsNoneAndNumbersKeepTheirDigits) {
  add_run(Backend::cuda);
  std::ofstream(dir_ / "own.sql")
      << "SELECT NULL AS a, 12345678901 AS b, 1.0/3 AS c, 'x' AS d, 2.0 AS e, "
         "(SELECT sd(value) FROM json_each('[1,2,null,4]')) AS s, "
         "(SELECT sd(value) FROM json_each('[1]')) AS s1, t975(2) AS t, t975(0) AS t0, "
         "(SELECT reach95(value) FROM json_each('[1,2,4]')) AS r, "
         "(SELECT reach95(value) FROM json_each('[1]')) AS r1, "
         "speedup_text(ln(1.25), 0.1, 2) AS up, speedup_text(ln(1.25), NULL, 2) AS none, "
         "speedup_text(ln(1.25), 0.3, 2) AS same, speedup_text(NULL, 0.1, 2) AS unknown, "
         "interval_text(ln(2), ln(2), 1) AS i, interval_text(ln(2), NULL, 1) AS i0, "
         "speedup_with_interval(ln(4), ln(2), 1) AS u, memory_ns(6, 5, 3, 2e9) AS m, "
         "memory_ns(6, 5, 3, NULL) AS m0, products_ns(8, 2e9) AS p";
  const Table t = report((dir_ / "own.sql").string());
  const char* const expected[] = {
      "", "12345678901",    "0.333333", "x",     "2", "1.52753", "", "4.30265",
      "", "3.79458",        "",         "1.25x", "~", "~",       "", "1.0–4.0",
      "", "4.0x (2.0–8.0)", "4",        "",      "4"};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(t.rows[0][i].text, expected[i]) << t.columns[i];
  EXPECT_TRUE(t.rows[0][0].none);
  EXPECT_TRUE(t.rows[0][1].number);
  EXPECT_FALSE(t.rows[0][3].number);
  EXPECT_FALSE(t.rows[0][3].none);
}

TEST_F(ReportTest, HasBoundsAndBlamesTheRightOne) {
  add_run(Backend::cuda);
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 1000000) ";
  EXPECT_NE(refusal(numbers + "SELECT i FROM n").find("more than 1000000 rows"), std::string::npos);
  EXPECT_EQ(end_of("SELECT length(zeroblob(1000000000)) AS n").first, Exit::usage);
  const std::string twice = refusal("SELECT 1 AS a, 2 AS b, 3 AS a");
  EXPECT_NE(twice.find("two columns 'a'"), std::string::npos) << twice;
  EXPECT_EQ(end_of("SELECT nothing FROM nowhere").first, Exit::usage);
  Database(db_, SQLITE_OPEN_READWRITE).execute("PRAGMA user_version = 3");
  std::ofstream(db_, std::ios::in | std::ios::out | std::ios::binary).seekp(8192)
      << std::string(200000, 'x');
  EXPECT_EQ(end_of("SELECT count(span_ns) AS n FROM result JOIN process USING (process_id)").first,
            Exit::store);
}

}  // namespace
}  // namespace moegate
