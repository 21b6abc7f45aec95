// SPDX-License-Identifier: Apache-2.0
// A verdict for programs and forges: JUnit XML, GitHub annotations and the step's summary.
#include "harness/base/test_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>

#include "harness/judge/gate_fixture.h"
#include "harness/report/forges.h"
#include "harness/report/report_fixture.h"

namespace moegate::test {
namespace {

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
  const ScratchFolder folder;
  const fs::path file = folder / "junit_worst.xml";
  std::ofstream(file, std::ios::binary) << junit_xml(report);
  const std::string check =
      "python3 -c \"import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); "
      "m = r.find('.//failure').get('message'); "
      "sys.exit(not (r.tag == 'testsuites' and m.endswith('<b>&amp;\\n\\t µ')))\" ";
  EXPECT_EQ(std::system((check + file.string()).c_str()), 0) << junit_xml(report);
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
  const ScopedVariable workspace("GITHUB_WORKSPACE", dir_.path());
  const ScopedVariable step("GITHUB_STEP_SUMMARY", summary);
  testing::internal::CaptureStderr();
  const int code = gate({"--github", "--out", (dir_ / "j.xml").string()});
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 10) << out_;
  EXPECT_EQ(err.find("::error file=baselines/nvidia-h200/nightly.tsv,line=10,title=latency "
                     "regression::topk_sort/tokens=16 fused: "),
            0u)
      << err;
  EXPECT_EQ(read_file(summary), "before\n" + out_);
  EXPECT_NE(read_file(dir_ / "j.xml").find("<failure type=\"latency\""), std::string::npos);

  const auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  fs::resize_file(summary, kSummaryBytes - comment(report).size() + 1);
  append_summary(report, summary);
  const std::string full = read_file(summary);
  EXPECT_LE(full.size(), kSummaryBytes);
  EXPECT_NE(full.find("1 more table with 1 row left out"), std::string::npos)
      << "the verdict without its table";
  for (int i = 0; i < 10; ++i) append_summary(report, summary);
  EXPECT_LE(fs::file_size(summary), kSummaryBytes);
  const auto size = fs::file_size(summary);
  append_summary(report, summary);
  EXPECT_EQ(fs::file_size(summary), size) << "nothing fits any more";
}

// The fields of verdict.json, which programs of others read.

using Names = std::set<std::string>;

Names names_in(const nlohmann::json& object) {
  Names names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

/// A report with all that it can have.
nlohmann::json whole_verdict() {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  CaseVerdict& v = report.result.cases[0];
  v.stage = 2;
  v.waiver = "W-1";
  v.creep = 0.01;
  v.by_time = true;
  v.latency->mde = 0.02;
  v.cause = Cause{.sentence = "more bytes", .numbers = {{.name = "dram_bytes"}}};
  report.result.absent_shards.resize(1);
  report.result.suites["nightly"].against = "baselines/nightly.tsv";
  return nlohmann::json::parse(verdict_json(report));
}

TEST(VerdictJson, HasTheFieldsOfItsSchema) {
  const nlohmann::json v = whole_verdict();
  const char* const next =
      "CONTRACTS.md: a field that goes or means another thing raises \"schema\"";
  EXPECT_EQ(v.at("schema"), 1);
  EXPECT_EQ(
      names_in(v),
      (Names{"schema",          "exit",          "sentence", "db",       "run",     "limits",
             "judged",          "not_judged",    "blind",    "not_run",  "counts",  "throttle",
             "median_change",   "unsupported",   "notes",    "left_out", "changed", "waivers",
             "waiver_problems", "absent_shards", "suites",   "cases"}))
      << next;
  EXPECT_EQ(names_in(v.at("run")),
            (Names{"id", "label", "started", "status", "class", "device", "uuid", "driver",
                   "commit", "dirty", "build", "protocol", "timer", "flush", "rounds", "command"}))
      << next;
  EXPECT_EQ(names_in(v.at("limits")), (Names{"margin", "fail_at", "alpha", "blind_at"})) << next;
  EXPECT_EQ(names_in(v.at("counts")),
            (Names{"pass", "identical", "regressed", "improved", "inconclusive", "wrong", "missing",
                   "new", "environment", "waived"}))
      << next;
  EXPECT_EQ(names_in(v.at("absent_shards").at(0)), (Names{"shard", "of", "command"})) << next;
  EXPECT_EQ(names_in(v.at("suites").at(0)), (Names{"suite", "against", "note"})) << next;
  const nlohmann::json& row = v.at("cases").at(0);
  EXPECT_EQ(
      names_in(row),
      (Names{"suite",  "key",   "variant", "outcome",    "against", "why",    "stage",
             "waiver", "creep", "by",      "base",       "head",    "effect", "hodges_lehmann",
             "low",    "high",  "p",       "p_adjusted", "mde",     "blind",  "cause"}))
      << next;
  EXPECT_EQ(names_in(row.at("cause")), (Names{"kind", "sentence", "also", "numbers"})) << next;
  EXPECT_EQ(names_in(row.at("cause").at("numbers").at(0)), (Names{"name", "unit", "base", "head"}))
      << next;
}

}  // namespace
}  // namespace moegate::test
