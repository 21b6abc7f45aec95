// SPDX-License-Identifier: Apache-2.0
// The page of a verdict: what it says, and what of it in a size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

#include "harness/report/report_fixture.h"

namespace moegate::test {
namespace {

TEST(Report, SaysWhatWasReplayedAndHowToTakeAnImprovement) {
  auto report =
      report_on({verdict(Outcome::regressed, "a", 0.05), verdict(Outcome::improved, "b", -0.05)});
  report.result.cases[0].stage = 2;
  const std::string text = comment(report);
  EXPECT_EQ(text.find("**FAIL (exit 10): 1 regressed, 1 improved"), 0u) << text;
  EXPECT_NE(text.substr(0, text.find('\n')).find("**, on NVIDIA H200"), std::string::npos) << text;
  EXPECT_NE(text.find("replayed: regressed because"), std::string::npos) << text;
  EXPECT_NE(text.find("To bless this run as a whole: `moegate bless --run 1"), std::string::npos);
  report.next.clear();
  EXPECT_EQ(comment(report).find("moegate bless"), std::string::npos);
}

/// The line of a comment that explains words; empty where there is none.
std::string explained(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (const Word& word : words()) {
      if (line.starts_with(std::string(word.word) + ": ")) return line;
    }
  }
  return "";
}

TEST(Report, ExplainsAWordThatItUses) {
  EXPECT_EQ(explained(comment(report_on({verdict(Outcome::regressed, "a", 0.05)}))), "");
  for (const Word& word : words()) {
    auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
    report.result.cases[0].why = fmt::format("it says {}, as it is", word.word);
    const std::string line = explained(comment(report));
    EXPECT_TRUE(line.starts_with(std::string(word.word) + ": ")) << comment(report);
    EXPECT_EQ(count(line, ": "), 1u) << "and no other: " << line;
  }
}

TEST(Report, ExplainsEveryWordThatItUsesInOneLine) {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  report.result.cases[0].stage = 2;
  report.result.judged = 1;
  report.result.blind = 1;
  EXPECT_EQ(explained(comment(report)),
            "replayed: measured again, base and head in turn. blind: a change of 5 % could hide in "
            "the noise of the row.");
}

TEST(Report, PathsAndCommandsAreNoWords) {
  auto report = report_on({verdict(Outcome::regressed, "a/span", 0.05)});
  report.result.suites["nightly"] = {.against = "out/candidate/level.tsv", .note = ""};
  report.next = "moegate gate --candidate candidate";
  EXPECT_EQ(explained(comment(report)), "");
}

TEST(Report, TheGuideExplainsWordsAlike) {
  std::string guide = read_file(std::string(MOEGATE_SOURCE_DIR) + "/GUIDE.md");
  for (size_t at = 0; (at = guide.find("\n  ", at)) != std::string::npos;)
    guide.replace(at, 3, " ");
  for (const Word& word : words()) {
    const std::string sentence = fmt::format(
        "\n- {}: {}", word.word, fmt::format(fmt::runtime(word.means), "5 % (host: 50 %)"));
    EXPECT_NE(guide.find(sentence), std::string::npos) << sentence;
  }
}

TEST(Report, SaysThatNoRowIsBlindWithoutTheWord) {
  auto report = report_on({verdict(Outcome::pass, "a", 0.001)});
  report.result.judged = 1;
  const std::string text = comment(report);
  EXPECT_NE(text.find("A change of 5 % would show in every judged row."), std::string::npos)
      << text;
  EXPECT_EQ(text.find("blind"), std::string::npos) << text;
}

TEST(Report, WhatChangedBesideTheKernelsComesFirst) {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  report.result.changed = {"ci/waivers.ini was edited", "variant b of op was removed or renamed"};
  const std::string text = comment(report);
  const size_t first = text.find("**changed:** ci/waivers.ini was edited");
  EXPECT_LT(first, text.find("changed:** variant b of op")) << text;
  EXPECT_LT(text.find("changed:** variant b of op"), text.find("Failures")) << text;
  EXPECT_NE(verdict_json(report).find("variant b of op was removed or renamed"), std::string::npos);
}

TEST(Report, ATimeOfARowOfRatiosSaysItsUnit) {
  auto report = report_on({verdict(Outcome::regressed, "a", 0.05)});
  report.run.device.backend = Backend::host;
  EXPECT_EQ(comment(report).find("10 us"), std::string::npos) << comment(report);
  report.result.cases[0].by_time = true;
  EXPECT_NE(comment(report).find("10 us"), std::string::npos) << comment(report);
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
  EXPECT_GT(shown, 0u) << "the space that the failures leave";
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
  EXPECT_NE(text.find("\nA row fails if "), std::string::npos) << "the end stays";
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

}  // namespace
}  // namespace moegate::test
