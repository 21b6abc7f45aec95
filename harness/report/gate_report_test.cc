// SPDX-License-Identifier: Apache-2.0
// Every output of one verdict: markdown, JUnit XML, GitHub annotations.
#include "harness/report/gate_report.h"

#include <cmath>

#include "harness/judge/gate_fixture.h"
#include "harness/report/github.h"
#include "harness/report/junit.h"

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

GateReport report_of(std::vector<CaseVerdict> cases) {
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

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Report, SaysWhatWasReplayedAndHowToTakeAnImprovement) {
  auto report =
      report_of({verdict(Outcome::regressed, "a", 0.05), verdict(Outcome::improved, "b", -0.05)});
  report.result.cases[0].stage = 2;
  const std::string text = markdown(report);
  EXPECT_EQ(text.find("**FAIL (exit 10): 1 regressed, 1 improved"), 0u) << text;
  EXPECT_NE(text.find("replayed: regressed because"), std::string::npos) << text;
  EXPECT_NE(text.find("To take this run, all of it: `moegate bless --run 1"), std::string::npos);
  report.next.clear();
  EXPECT_EQ(markdown(report).find("moegate bless"), std::string::npos);
}

TEST(Report, CellsShowWhatTheySay) {
  auto report = report_of({verdict(Outcome::wrong, "a")});
  report.result.cases[0].why = "kernel<int> | `x` \xff";
  EXPECT_NE(markdown(report).find("kernel\\<int\\> \\| \\`x\\` \xEF\xBF\xBD"), std::string::npos)
      << markdown(report);
}

TEST(Report, LeavesOutWholeTablesFromTheBottom) {
  std::vector<CaseVerdict> cases;
  for (int i = 0; i < 70; ++i) {
    cases.push_back(verdict(Outcome::regressed, "slow" + std::to_string(i), 0.05));
    cases.push_back(verdict(Outcome::improved, "fast" + std::to_string(i), -0.05));
    for (int k = 0; k < 100; ++k) cases[cases.size() - 2].why += " Gründe";
    cases.back().why = cases[cases.size() - 2].why;
    for (CaseVerdict* v : {&cases.back(), &cases[cases.size() - 2]}) v->id.key.append(200, 'x');
  }
  const GateReport report = report_of(cases);
  const std::string text = markdown(report);
  EXPECT_LT(text.size(), kCommentBytes);
  EXPECT_NE(text.find("### Failures (70)"), std::string::npos);
  EXPECT_NE(text.find("10 more in verdict.json"), std::string::npos);
  EXPECT_EQ(text.find("### Improvements"), std::string::npos);
  EXPECT_NE(text.find("\n70 rows omitted, see verdict.json.\n"), std::string::npos);
  EXPECT_NE(text.find("To repeat:"), std::string::npos) << "the commands stay";
  const std::string bare = markdown(report, 2000);
  EXPECT_LT(bare.size(), 2000u);
  EXPECT_EQ(bare.find("**FAIL"), 0u);
  EXPECT_NE(bare.find("140 rows omitted"), std::string::npos);
}

TEST(Report, ABigTableOfAnAbDoesNotEmptyTheComment) {
  auto report = report_of({verdict(Outcome::regressed, "a", 0.05)});
  while (report.tables.size() < 59'970) report.tables += "| 8 | 10.00 |\n";
  report.tables.resize(59'990, '\n');
  const std::string text = markdown(report);
  EXPECT_LE(text.size(), kCommentBytes);
  EXPECT_GT(text.size(), kCommentBytes * 9 / 10) << text;
}

TEST(Junit, CountsByWhatHappened) {
  auto report = report_of({verdict(Outcome::pass, "a", 0.001),
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
  auto report = report_of(
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
  auto report = report_of({verdict(Outcome::wrong, "a<\"&'>")});
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
  auto report = report_of(cases);
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
  EXPECT_EQ(annotations(report_of({verdict(Outcome::pass, "a")}), "/"), "");
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

  const auto report = report_of({verdict(Outcome::regressed, "a", 0.05)});
  fs::resize_file(summary, (size_t{1} << 20) - markdown(report).size() + 1);
  append_summary(report, summary);
  const std::string full = text_of(summary);
  EXPECT_LT(full.size(), size_t{1} << 20);
  EXPECT_NE(full.find("1 rows omitted"), std::string::npos) << "the verdict without its table";
  append_summary(report, summary);
  EXPECT_EQ(text_of(summary), full) << "nothing fits any more";
}

}  // namespace
}  // namespace moegate
