// SPDX-License-Identifier: Apache-2.0
// Every output of one verdict: markdown, JUnit XML, GitHub annotations.
#include "harness/report/gate_report.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "harness/judge/gate_fixture.h"
#include "harness/report/github.h"
#include "harness/report/junit.h"
#include "harness/report/page_markdown.h"

namespace moegate {
namespace {

CaseVerdict verdict(Outcome outcome, const std::string& variant, double effect = 0) {
  CaseVerdict v;
  v.id = {"nightly", "topk_sort/experts=128,tokens=8", variant};
  v.against = "baselines/nightly.tsv";
  v.outcome = outcome;
  v.why = std::string(name_of(outcome)) + " because";
  v.base = 10;
  v.head = 10 * (1 + effect);
  if (effect != 0) {
    v.stage = 1;
    v.latency = Judgement{};
    v.latency->outcome = outcome;
    v.latency->effect = effect;
    v.latency->low = effect - 0.01;
    v.latency->high = effect + 0.01;
    v.latency->p_adjusted = 0.001;
  }
  return v;
}

GateReport report_on(std::vector<CaseVerdict> cases) {
  GateReport report;
  report.result.cases = std::move(cases);
  count_outcomes(report.result);
  report.limits = Limits::cuda();
  report.exit = Exit::latency;
  report.run.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1"};
  report.run.git_sha = "abc123";
  report.next = "moegate bless --run 1 --reason '...'";
  return report;
}

std::string comment(const GateReport& report) {
  return to_markdown(gate_page(report), kCommentBytes);
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Report, SaysWhatWasReplayedAndHowToTakeAnImprovement) {
  auto report =
      report_on({verdict(Outcome::regressed, "a", 0.05), verdict(Outcome::improved, "b", -0.05)});
  report.result.cases[0].stage = 2;
  const std::string text = comment(report);
  EXPECT_EQ(text.find("**FAIL (exit 10): 1 regressed, 1 improved"), 0u) << text;
  EXPECT_NE(text.find("replayed: regressed because"), std::string::npos) << text;
  EXPECT_NE(text.find("To take this run, all of it: `moegate bless --run 1"), std::string::npos);
  report.next.clear();
  EXPECT_EQ(comment(report).find("moegate bless"), std::string::npos);
}

TEST(Report, CellsShowWhatTheySay) {
  auto report = report_on({verdict(Outcome::wrong, "a")});
  report.result.cases[0].why = "kernel<int> | `x` \xff";
  EXPECT_NE(comment(report).find("kernel\\<int\\> \\| \\`x\\` \xEF\xBF\xBD"), std::string::npos)
      << comment(report);
}

TEST(Report, LeavesOutRowsFromTheEndAndThenWholeTables) {
  std::vector<CaseVerdict> cases;
  for (int i = 0; i < 70; ++i) {
    cases.push_back(verdict(Outcome::regressed, "slow" + std::to_string(i), 0.05));
    cases.push_back(verdict(Outcome::improved, "fast" + std::to_string(i), -0.05));
    for (int k = 0; k < 100; ++k) cases[cases.size() - 2].why += " Gründe";
    cases.back().why = cases[cases.size() - 2].why;
    for (CaseVerdict* v : {&cases.back(), &cases[cases.size() - 2]}) v->id.key.append(200, 'x');
  }
  const GateReport report = report_on(cases);
  const std::string text = comment(report);
  EXPECT_LE(text.size(), kCommentBytes);
  EXPECT_GT(text.size(), kCommentBytes * 9 / 10);
  EXPECT_EQ(count(text, "\n| regressed "), 70u);
  const size_t shown = count(text, "\n| improved ");
  EXPECT_GT(shown, 10u) << "the space that the failures leave";
  EXPECT_NE(text.find(fmt::format("\n{} more left out for size; see verdict.json.\n", 70 - shown)),
            std::string::npos);
  EXPECT_NE(text.find("To bless:"), std::string::npos) << "the commands stay";
  const std::string bare = to_markdown(gate_page(report), 1500);
  EXPECT_LE(bare.size(), 1500u);
  EXPECT_EQ(bare.find("**FAIL"), 0u);
  EXPECT_EQ(count(bare, "\n| regressed "), 0u) << bare;
  EXPECT_NE(bare.find("2 more tables with 140 rows left out for size; see verdict.json.\n"),
            std::string::npos)
      << bare;
}

TEST(Report, AFileHasAllRows) {
  const GateReport report =
      report_on(std::vector<CaseVerdict>(2000, verdict(Outcome::regressed, "a", 0.05)));
  EXPECT_EQ(count(to_markdown(gate_page(report), kAnyBytes), "\n| regressed "), 2000u);
}

/// Tables of an A/B of so many variants, each of 20 rows, and its footer.
std::vector<Section> ab_of(int variants) {
  std::vector<Section> sections;
  for (int i = 0; i < variants; ++i) {
    Rows rows{{{"tokens", "Speedup"}, {}}, 1};
    for (int tokens = 0; tokens < 20; ++tokens)
      rows.table.rows.push_back({{std::to_string(tokens), true}, {"1.250x", true, true}});
    sections.push_back({1, {Paragraph{{{bold("v" + std::to_string(i))}}}, rows}});
  }
  sections.push_back({0, {Paragraph{{{plain("Protocol 1")}}, true}}});
  return sections;
}

TEST(Report, ABigTableOfAnAbDoesNotEmptyTheComment) {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  report.ab = ab_of(1);
  const size_t one = to_markdown({{report.ab[0]}, ""}, kAnyBytes).size() + 1;
  report.ab = ab_of(static_cast<int>(59'990 / one));
  const std::string text = comment(report);
  EXPECT_LE(text.size(), kCommentBytes);
  EXPECT_GT(text.size(), kCommentBytes * 9 / 10) << text;
  EXPECT_EQ(count(text, "\n| regressed "), 1u);
}

/// Whether every table is whole: as many cells in each line as in its first, and a rule below it.
bool has_whole_tables(const std::string& text) {
  std::istringstream lines(text);
  size_t cells = 0, row = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t bars = count(line, "|") - count(line, "\\|");
    row = bars > 0 ? row + 1 : 0;
    if (row == 1) cells = bars;
    if (row > 0 && (bars != cells || line.back() != '|')) return false;
    if (row == 2 && line.find_first_not_of("|-: ") != std::string::npos) return false;
  }
  return true;
}

void expect_a_full_page(size_t budget, int failures, int variants) {
  auto report = report_on(
      std::vector<CaseVerdict>(static_cast<size_t>(failures), verdict(Outcome::wrong, "a|`b`")));
  report.ab = ab_of(variants);
  const std::string text = to_markdown(gate_page(report), budget);
  EXPECT_LE(text.size(), budget) << failures;
  EXPECT_GT(text.size(), budget / 10 * 9) << failures;
  EXPECT_TRUE(has_whole_tables(text)) << failures;
  EXPECT_EQ(count(text, "<sub>"), count(text, "</sub>"));
  EXPECT_NE(text.find(" left out for size; see verdict.json.\n"), std::string::npos);
  EXPECT_NE(text.find("\nA case fails from "), std::string::npos) << "the end stays";
  if (count(text, "\n| wrong ") < static_cast<size_t>(failures)) {
    EXPECT_EQ(text.find("| tokens "), std::string::npos) << "failures come first";
  }
}

TEST(Report, UsesTheSpaceThereIsWhateverFails) {
  for (const int failures : {0, 1, 60, 61, 150, 400, 2000})
    expect_a_full_page(kCommentBytes, failures, 150);
  expect_a_full_page(kSummaryBytes, 100, 2000);
}

TEST(Report, TextsOfAStoreAreNoMarkup) {
  auto report = report_on({verdict(Outcome::pass, "a")});
  const std::string evil = "x</sub>\n::error::![i](u) <b> @team \x1b[31m **b** `c`";
  RunInfo& run = report.run;
  for (std::string* text :
       {&run.label, &run.device.name, &run.device.uuid, &run.device.driver, &run.git_sha,
        &run.build, &run.timer, &run.flush, &run.started, &run.status, &run.command, &report.db,
        &report.throttle, &report.next}) {
    *text = evil;
  }
  report.result.suites[evil] = {.against = evil, .note = evil};
  report.result.waiver_problems = {evil};
  report.result.waiver_notes = {evil};
  report.result.cases.push_back(verdict(Outcome::inconclusive, evil));
  report.result.cases.back().why = evil;
  const std::string text = comment(report);
  EXPECT_EQ(text.find("\n::error"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  // In code spans markup is text: `` …``; outside of them it is escaped.
  const std::string in_code = "`` x</sub> ::error::![i](u) <b> @team \xEF\xBF\xBD[31m **b** `c` ``";
  EXPECT_EQ(count(text, in_code), 3u) << text;  // suite, To repeat, To bless
  for (const char* markup : {"<b>", "@team", " **b** ", " `c`"})
    EXPECT_EQ(count(text, markup), 3u) << markup << "\n" << text;
  EXPECT_EQ(count(text, "</sub>"), 3u + 1) << "and the one that ends the small print\n" << text;
  EXPECT_EQ(count(text, "](u)") - count(text, "\\](u)"), 3u) << text;
}

TEST(Junit, CountsByWhatHappened) {
  auto report = report_on({verdict(Outcome::pass, "a", 0.001),
                           verdict(Outcome::regressed, "b", 0.05), verdict(Outcome::wrong, "c"),
                           verdict(Outcome::missing, "d"), verdict(Outcome::missing, "e"),
                           verdict(Outcome::inconclusive, "f"), verdict(Outcome::environment, "g"),
                           verdict(Outcome::waived, "h", 0.05), verdict(Outcome::identical, "i"),
                           verdict(Outcome::improved, "j", -0.05), verdict(Outcome::fresh, "k")});
  report.result.cases[4].status = Status::crashed;
  report.result.cases[7].waiver = "W-1";
  report.result.cases[1].stage = 2;
  const std::string xml = junit_xml(report);
  EXPECT_NE(xml.find("<testsuite name=\"nightly.topk_sort\""), std::string::npos) << xml;
  EXPECT_EQ(count(xml, "tests=\"11\" failures=\"3\" errors=\"1\" skipped=\"3\""), 2u) << xml;
  EXPECT_NE(xml.find("<testcase classname=\"nightly.topk_sort\" "
                     "name=\"experts=128,tokens=8 [b]\" time=\"0.000010500\">"),
            std::string::npos)
      << xml;
  for (const char* element :
       {"<failure type=\"latency\" message=\"regressed because\"/>", "<failure type=\"accuracy\"",
        "<failure type=\"coverage\"", "<error type=\"crashed\"",
        "<skipped message=\"inconclusive: ", "<skipped message=\"environment: ",
        "<skipped message=\"new: new because\"/>", "<property name=\"waiver\" value=\"W-1\"/>",
        "<property name=\"effect\" value=\"0.05\"/>",
        "<property name=\"stage\" value=\"replayed\"/>",
        "<property name=\"uuid\" value=\"GPU-1\"/>"}) {
    EXPECT_NE(xml.find(element), std::string::npos) << element << "\n" << xml;
  }
}

TEST(Junit, OneTestsuitePerSuiteAndOperatorAndNoTimeForRatios) {
  auto report = report_on(
      {verdict(Outcome::pass, "a"), verdict(Outcome::pass, "b"), verdict(Outcome::pass, "c")});
  report.result.cases[1].id.key = "moe/tokens=8";
  report.result.cases[2].id.suite = "smoke";
  report.run.device.backend = Backend::host;
  const std::string xml = junit_xml(report);
  EXPECT_EQ(count(xml, "<testsuite "), 3u);
  EXPECT_EQ(count(xml, " time=\"0.000000000\""), 7u) << xml;
}

TEST(Junit, APythonParserTakesTheWorstText) {
  if (std::system("python3 -c 'import xml.etree' 2>/dev/null") != 0) GTEST_SKIP() << "no python3";
  auto report = report_on({verdict(Outcome::wrong, "a<\"&'>")});
  report.result.cases[0].why = "]]> \x01\x1b[31m \xff\xfe \xED\xA0\x80 \xEF\xBF\xBF <b>&amp;\n\t µ";
  report.run.git_sha = "\"<&";
  const fs::path file = fs::path(::testing::TempDir()) / "junit_worst.xml";
  std::ofstream(file, std::ios::binary) << junit_xml(report);
  const std::string check =
      "python3 -c \"import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); "
      "m = r.find('.//failure').get('message'); "
      "sys.exit(not (r.tag == 'testsuites' and m.endswith('<b>&amp;\\n\\t µ')))\" ";
  EXPECT_EQ(std::system((check + file.string()).c_str()), 0) << junit_xml(report);
  fs::remove(file);
}

TEST(Github, AnnotatesTheWorstTenAndSumsUpTheRest) {
  std::vector<CaseVerdict> cases;
  for (int i = 0; i < 13; ++i)
    cases.push_back(verdict(Outcome::regressed, "v" + std::to_string(i), 0.05 + 0.01 * i));
  cases[3].why = "+8 %\nsecond line";
  auto report = report_on(cases);
  report.result.waiver_problems = {"waiver W-1 expired"};
  const std::string text = annotations(report, "/");
  EXPECT_EQ(count(text, "::error "), 10u) << text;
  EXPECT_EQ(text.find("::error title=latency regression::topk_sort/experts=128,tokens=8 v12: "), 0u)
      << text;
  EXPECT_EQ(text.find(" v2: "), std::string::npos) << "the mildest are summed up";
  EXPECT_NE(text.find("v3: +8 %25%0Asecond line\n"), std::string::npos) << text;
  EXPECT_NE(text.find("::warning title=moegate::3 more failures, see the summary%0Awaiver W-1 "
                      "expired\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(annotations(report_on({verdict(Outcome::pass, "a")}), "/"), "");
}

TEST_F(GateTest, GithubAnchorsAtTheBaselineAndAppendsTheSummary) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "16", "fused")) row.result.span_ns *= 1.05;
    return true;
  });
  const fs::path summary = dir_ / "summary.md";
  std::ofstream(summary) << "before\n";
  setenv("GITHUB_WORKSPACE", dir_.c_str(), 1);
  setenv("GITHUB_STEP_SUMMARY", summary.c_str(), 1);
  testing::internal::CaptureStderr();
  const int code = gate({"--github", "--junit", (dir_ / "j.xml").string()});
  const std::string err = testing::internal::GetCapturedStderr();
  unsetenv("GITHUB_WORKSPACE");
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_EQ(code, 10) << out_;
  EXPECT_EQ(err.find("::error file=baselines/nvidia-h200/nightly.tsv,line=10,title=latency "
                     "regression::topk_sort/tokens=16 fused: "),
            0u)
      << err;
  EXPECT_EQ(text_of(summary), "before\n" + out_);
  EXPECT_NE(text_of(dir_ / "j.xml").find("<failure type=\"latency\""), std::string::npos);

  const auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  fs::resize_file(summary, kSummaryBytes - comment(report).size() + 1);
  append_summary(report, summary);
  const std::string full = text_of(summary);
  EXPECT_LE(full.size(), kSummaryBytes);
  EXPECT_NE(full.find("1 more table with 1 row left out"), std::string::npos)
      << "the verdict without its table";
  for (int i = 0; i < 10; ++i) append_summary(report, summary);
  EXPECT_LE(fs::file_size(summary), kSummaryBytes);
  const auto size = fs::file_size(summary);
  append_summary(report, summary);
  EXPECT_EQ(fs::file_size(summary), size) << "nothing fits any more";
}

}  // namespace
}  // namespace moegate
