// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <nlohmann/json.hpp>

#include <set>

#include "harness/cause/cause_fixture.h"
#include "harness/judge/gate_fixture.h"
#include "harness/report/forges.h"
#include "harness/report/gate_report.h"
#include "harness/report/report_fixture.h"

namespace moegate::test {
namespace {

class ExplainTest : public GateTest {
 protected:
  ExplainTest() { info_.program = "old"; }

  /// A run whose kernels are the fixture's; fused takes so much longer in all its cases.
  int64_t measured(double slower) {
    return add_run([&](Row& row, int) {
      Result result = timed_row();
      result.variant = row.variant;
      if (row.variant == "fused") result.span_ns = result.busy_ns *= 1 + slower;
      row.result = result;
      return true;
    });
  }
  /// Counters of the same program; fused reads so many bytes.
  int64_t counted(double bytes) {
    info_.task = "counters";
    const int64_t run = add_run([&](Row& row, int round) {
      row.result = counted_row();
      row.result.variant = row.variant;
      row.result.metrics[0].value = row.variant == "fused" ? bytes : 1e6;
      return round == 0;
    });
    info_.task = "measure";
    return run;
  }
  /// Runs of two programs, counted, of which the second reads more.
  void two_runs() {
    base_ = measured(0);
    counted(16e6);
    info_.program = "new";
    head_ = measured(0.2);
    counted(24e6);
  }
  /// Two runs of two programs whose fused differs by so much, and in a counter that
  /// explains nothing.
  void two_runs_apart_by(double slower) {
    info_.program = "old";
    base_ = measured(0);
    counted(16e6);
    info_.program = "new";
    head_ = measured(slower);
    info_.task = "counters";
    add_run([&](Row& row, int round) {
      row.result = counted_row();
      row.result.variant = row.variant;
      row.result.metrics[0].value = row.variant == "fused" ? 16e6 : 1e6;
      for (Metric& m : row.result.metrics)
        m.value *= m.name.starts_with("sm__warps_active") ? 0.7 : 1;
      return round == 0;
    });
    info_.task = "measure";
  }
  /// As if a verdict of the head against the base had come to this about all of its rows.
  void judged_as(const std::string& against, Outcome outcome, double effect) {
    Store store = Store::open(db_, Store::Mode::write);
    GateResult result;
    result.suites["nightly"].against = against;
    for (const auto& [id, side] : collect(store.each_level(head_))) {
      CaseVerdict v;
      v.id = id;
      v.against = against;
      v.outcome = outcome;
      v.latency = Judgement{.outcome = outcome, .effect = effect};
      result.cases.push_back(v);
    }
    store_verdicts(store, head_, result);
  }
  int explain_them(Args args = {}) {
    args.insert(args.begin(),
                {"why", "--against", std::to_string(base_), "--run", std::to_string(head_)});
    return call(cmd_report, args);
  }

  int64_t base_ = 0, head_ = 0;
};

TEST_F(ExplainTest, StoredRunsAreEnough) {
  two_runs();
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("- `topk_sort/tokens=8` `fused` +20.0 %: DRAM bytes read +50 % (16 -\\> 24 MB)"))
      << out_;
  EXPECT_TRUE(says("`topk_sort/tokens=8` `chain` +0.0 %: nothing differs: ")) << out_;
  EXPECT_TRUE(says("| dram\\_\\_bytes_read.sum ")) << out_;
  EXPECT_FALSE(says("moegate profile")) << "both sides were counted\n" << out_;

  EXPECT_EQ(explain_them({"--filter", "tokens=8$", "--variant", "fused", "--format", "json"}), 0);
  const auto rows = nlohmann::json::parse(out_);
  EXPECT_EQ(rows[0]["number"], "dram__bytes_read.sum") << "those of the sentence first";
  for (const auto& row : rows) EXPECT_EQ(row["case"], "topk_sort/tokens=8");
}

TEST_F(ExplainTest, ARowIsExplainedAsAmongAll) {
  two_runs();
  EXPECT_EQ(explain_them({"--format", "json"}), 0);
  auto of_case = nlohmann::json::array();
  for (const auto& row : nlohmann::json::parse(out_)) {
    if (row["case"] == "topk_sort/tokens=8") of_case.push_back(row);
  }
  ASSERT_FALSE(of_case.empty());
  EXPECT_EQ(explain_them({"--filter", "tokens=8$", "--format", "json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_), of_case);
}

TEST_F(ExplainTest, WhatIsMissingHasACommand) {
  base_ = measured(0);
  info_.program = "new";
  info_.git_sha = "beef";
  head_ = measured(0.2);
  counted(24e6);
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("unknown: of the base no counters")) << out_;
  EXPECT_TRUE(
      says("To count run 1 'night', with the program of abc123: `moegate profile --suite "
           "nightly --db "))
      << out_;
  EXPECT_FALSE(says("the program of beef")) << "the head was counted\n" << out_;
}

TEST_F(ExplainTest, TwoVariantsOfACaseAreAPair) {
  const auto only = [&](const char* variant) {
    return add_run([&](Row& row, int) {
      row.result = timed_row();
      row.result.variant = row.variant;
      return row.variant == variant;
    });
  };
  base_ = only("chain");
  head_ = only("fused");
  EXPECT_EQ(explain_them({"--format", "csv"}), 0) << out_;
  EXPECT_TRUE(says("chain → fused")) << out_;
}

TEST_F(ExplainTest, WhatIsJudgedEqualDoesNotDiffer) {
  two_runs_apart_by(0.006);  // 3 processes a side
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +0.6 %: nothing differs: 18 counters")) << out_;
  two_runs_apart_by(0.02);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +2.0 %: unknown: active warps 12 -\\> 8.4 %, which does not")) << out_;
}

TEST_F(ExplainTest, WhatIsJudgedEqualNeedsNoCounters) {
  base_ = measured(0);
  info_.program = "new";
  head_ = measured(0.006);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("+0.6 %: nothing differs: judged equal; of both sides no counters; the same"))
      << out_;
}

TEST_F(ExplainTest, AStoredVerdictOfTheTwoStands) {
  two_runs_apart_by(0.02);
  judged_as("run 7 'night'", Outcome::pass, 0.012);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +2.0 %: unknown")) << "that was another base's\n" << out_;
  judged_as(fmt::format("run {} 'night'", base_), Outcome::inconclusive, 0.019);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +1.9 %: unknown")) << out_;
  judged_as(fmt::format("run {} 'night' at abc123", base_), Outcome::pass, 0.012);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +1.2 %: nothing differs")) << "rounds of an A/B are paired\n" << out_;
}

TEST_F(ExplainTest, RowsThatASideHasNoResultOfAreCounted) {
  const auto without = [&](const std::set<std::string>& unsupported) {
    return add_run([&](Row& row, int) {
      row.result = timed_row();
      row.result.variant = row.variant;
      if (!unsupported.contains(row.variant)) return true;
      row.result = {};
      row.result.variant = row.variant;
      row.result.status = Status::unsupported;
      return true;
    });
  };
  base_ = without({"fused"});
  head_ = without({"fused"});
  EXPECT_EQ(explain_them(), 0);
  EXPECT_TRUE(says("Why (2)")) << out_;
  EXPECT_FALSE(says("`fused`")) << out_;
  EXPECT_TRUE(says("2 rows lack a result on one side or both")) << out_;
  head_ = without({});
  EXPECT_EQ(explain_them(), 0);
  EXPECT_FALSE(says("`fused`")) << "one side lacks it\n" << out_;
  base_ = head_;
  head_ = without({"chain", "fused"});
  base_ = without({"chain", "fused"});
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("4 rows lack a result")) << out_;
}

TEST_F(ExplainTest, RefusesWhatItCannotExplain) {
  two_runs();
  EXPECT_EQ(explain_them({"--filter", "tokens=7"}), 13);
  EXPECT_TRUE(says("no row in common that matches --filter 'tokens=7'")) << out_;
  EXPECT_EQ(explain_them({"--filter", "("}), 2);
  EXPECT_EQ(call(cmd_report, {"why", "--run", "1"}), 2);
  EXPECT_EQ(call(cmd_report, {"why", "--against", "1", "--run", "1"}), 2);
  EXPECT_TRUE(says("both run 1")) << out_;
  EXPECT_EQ(call(cmd_report, {"why", "--against", "1", "--run", "77"}), 2);
}

// Why rows differ, in every output of a verdict.

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

TEST_F(GateTest, AGateReplacesTheVerdictOfTheOneBefore) {
  GateReport report = caused_report();
  const int64_t run = add_run();
  Store store = Store::open(db_, Store::Mode::update);
  const auto stored = [&](const std::string& against) {
    report.result.suites["nightly"].against = against;
    for (CaseVerdict& v : report.result.cases) v.against = against;
    store_verdicts(store, run, report.result);
    Statement q(store.database(),
                "SELECT group_concat(against, ' | ') FROM (SELECT DISTINCT "
                "against FROM verdict ORDER BY against)");
    q.step();
    return q.text(0);
  };
  EXPECT_EQ(stored("out/candidates/nightly.tsv"), "out/candidates/nightly.tsv");
  EXPECT_EQ(stored("run 7 'night'"), "out/candidates/nightly.tsv | run 7 'night'");
  EXPECT_EQ(stored("baselines/nightly.tsv"), "baselines/nightly.tsv | run 7 'night'");
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
}  // namespace moegate::test
