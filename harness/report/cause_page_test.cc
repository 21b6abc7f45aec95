// SPDX-License-Identifier: Apache-2.0
// Why rows differ, in every output of a verdict.
#include "harness/report/cause_page.h"

#include <nlohmann/json.hpp>

#include "harness/judge/gate_fixture.h"
#include "harness/report/github.h"
#include "harness/report/junit.h"
#include "harness/report/report_fixture.h"

namespace moegate {
namespace {

/// One row that became slower for a reason, one that became faster for another.
GateReport caused_report() {
  GateReport report =
      report_on({verdict(Outcome::improved, "quick", -0.2),
                 verdict(Outcome::regressed, "slow", 0.12), verdict(Outcome::pass, "same", 0.001)});
  auto& cases = report.result.cases;
  cases[0].cause = Cause{CauseKind::resources, "local memory 24 -> 0 B/thread", {}, {}};
  cases[1].cause = Cause{CauseKind::work,
                         "DRAM bytes read +12 % (16.8 -> 18.8 MB)",
                         {"clock only: 1980 -> 1900 MHz"},
                         {{"dram__bytes_read.sum", "bytes", 16.8e6, 18.8e6}, {"zero", "", 0, 2}}};
  return report;
}

TEST(CausePage, ASentencePerRowAndTheNumbersFoldedBelow) {
  const std::string text = comment(caused_report());
  EXPECT_NE(text.find("### Why (2)\n\n"
                      "- `topk_sort/experts=128,tokens=8` `slow` +12.0 %: DRAM bytes read +12 % "
                      "(16.8 -\\> 18.8 MB)\n"
                      "- `topk_sort/experts=128,tokens=8` `quick` -20.0 %: local memory"),
            std::string::npos)
      << text;
  const size_t fold = text.find("<details><summary>Numbers of row 1 of 2</summary>");
  ASSERT_NE(fold, std::string::npos) << text;
  EXPECT_NE(text.find("Also: clock only: 1980 -\\> 1900 MHz.", fold), std::string::npos) << text;
  EXPECT_NE(text.find("+11.9 %", fold), std::string::npos) << text;
  EXPECT_EQ(count(text, "<details>"), 1u) << "a row without numbers has no table";
  EXPECT_EQ(count(text, "same"), 0u);
  EXPECT_EQ(comment(report_on({verdict(Outcome::regressed, "b", 0.05)})).find("Why ("),
            std::string::npos);
}

TEST(CausePage, ProgramsGetIt) {
  const GateReport report = caused_report();
  const auto json = nlohmann::json::parse(verdict_json(report));
  EXPECT_FALSE(json["cases"][2].contains("cause"));
  const auto& cause = json["cases"][1]["cause"];
  EXPECT_EQ(cause["kind"], "work");
  EXPECT_EQ(cause["sentence"], "DRAM bytes read +12 % (16.8 -> 18.8 MB)");
  EXPECT_EQ(cause["also"][0], "clock only: 1980 -> 1900 MHz");
  EXPECT_EQ(cause["numbers"][0]["name"], "dram__bytes_read.sum");
  EXPECT_EQ(cause["numbers"][0]["head"], 18.8e6);
  EXPECT_EQ(verdict_table(report.result).rows[0].back().text, "local memory 24 -> 0 B/thread");
  EXPECT_EQ(verdict_table(report.result).columns.back(), "cause");
}

TEST(CausePage, ForgesGetIt) {
  const GateReport report = caused_report();
  const std::string xml = junit_xml(report);
  EXPECT_NE(
      xml.find("<failure type=\"latency\" message=\"regressed because\">cause: DRAM bytes read "
               "+12 % (16.8 -&gt; 18.8 MB)"),
      std::string::npos)
      << xml;
  EXPECT_NE(xml.find("dram__bytes_read.sum: 1.68e+07 -&gt; 1.88e+07 bytes"), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<system-out>cause: local memory 24 -&gt; 0"), std::string::npos) << xml;
  const std::string text = annotations(report, "/");
  EXPECT_NE(text.find("slow: regressed because%0Acause: DRAM bytes read +12 %25"),
            std::string::npos)
      << text;
}

TEST_F(GateTest, TheStoreGetsIt) {
  GateReport report = caused_report();
  const int64_t run = add_run();
  report.result.suites["nightly"].against = "baselines/nightly.tsv";
  Store store = Store::open(db_, Store::Mode::update);
  store_verdicts(store, run, report.result);
  Statement q(store.database(), "SELECT variant, cause FROM verdict ORDER BY variant");
  std::map<std::string, std::string> causes;
  while (q.step()) causes[q.text(0)] = q.text(1);
  EXPECT_EQ(causes.at("slow"), "DRAM bytes read +12 % (16.8 -> 18.8 MB)");
  EXPECT_EQ(causes.at("same"), "");
}

TEST_F(GateTest, TheStoreHoldsTheLastVerdictAndIsLeftAloneWhereItSaysTheSame) {
  GateReport report = caused_report();
  const int64_t run = add_run();
  report.result.suites["nightly"].against = "baselines/nightly.tsv";
  for (CaseVerdict& v : report.result.cases) v.against = "baselines/nightly.tsv";
  Store store = Store::open(db_, Store::Mode::update);
  const auto stored = [&] {
    const int before = sqlite3_total_changes(store.database().handle());
    store_verdicts(store, run, report.result);
    return sqlite3_total_changes(store.database().handle()) - before;
  };
  const auto rows = static_cast<int>(report.result.cases.size());
  EXPECT_EQ(stored(), rows);
  EXPECT_EQ(stored(), 0) << "the same";
  report.result.cases[0].why = "another reason";
  EXPECT_EQ(stored(), 1);
  report.result.cases.pop_back();
  EXPECT_GT(stored(), 0);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM verdict"), rows - 1);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM verdict WHERE why = 'another reason'"),
            1);
}

TEST(CausePage, ATableHasALineForEachNumber) {
  const Table table = cause_table(caused_rows(caused_report().result));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0][5].text, "dram__bytes_read.sum");
  EXPECT_EQ(table.rows[1][5].text, "zero");
  EXPECT_EQ(table.rows[1][9].text, "") << "no share of nothing";
  EXPECT_EQ(table.rows[2][4].text, "local memory 24 -> 0 B/thread");
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
}

}  // namespace
}  // namespace moegate
