// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/man_page.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(ManPage, TextIsShownAsItIs) {
  EXPECT_EQ(roff_escaped("a-b\\c"), "a\\-b\\ec");
  EXPECT_EQ(roff_escaped(".sql"), "\\&.sql");
  EXPECT_EQ(roff_escaped("'x' ~ ^"), "\\&\\(aqx\\(aq \\(ti \\(ha");
}

TEST(ManPage, AGroupIsListedOnce) {
  const HelpFlag help_flag{"--help", "", "", "this text"};
  const HelpFlag suite{"--suite", "S", "", "by name"};
  const HelpFlag seed{"--seed", "N", "7", "of inputs"};
  const HelpText run{{"moegate run [options]"}, {{"Which", {suite, help_flag}}}};
  const HelpText list{{"moegate list [options]"}, {{"Which", {suite, seed, help_flag}}}};
  const std::string page =
      man_page("1.2", {{"run", "runs", run}, {"ab", "compares", run}, {"list", "lists", list}}, {});
  EXPECT_TRUE(page.starts_with(".TH MOEGATE 1 \"\" \"moegate 1.2\"")) << page;
  const std::string entry = ".TP\n\\fB\\-\\-suite\\fR \\fIS\\fR\nby name\n";
  const size_t first = page.find(entry);
  const size_t second = page.find(entry, first + 1);
  const size_t named = page.find(".PP\nWhich: as of \\fBmoegate run\\fR.\n");
  EXPECT_LT(page.find(".SS moegate run\nruns.\n"), first) << page;
  EXPECT_LT(first, page.find(".SS moegate ab\n"));
  EXPECT_LT(page.find(".SS moegate ab\n"), named) << page;
  EXPECT_LT(named, second) << "another group of the same title is listed";
  EXPECT_NE(page.find("of inputs (default: 7)\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("this text"), std::string::npos) << page;
}

TEST(ManPage, VariablesStandBehindTheCommands) {
  const HelpText run{{"moegate run [options]"}, {}};
  const std::string page =
      man_page("1.2", {{"run", "runs", run}}, {{"A_DB, B", "without `--db`; not `x`"}, {"C", "c"}});
  const std::string entries =
      ".TP\n\\fBA_DB, B\\fR\nwithout \\fB\\-\\-db\\fR; not \\fBx\\fR\n.TP\n\\fBC\\fR\nc\n";
  EXPECT_LT(page.find(".SS moegate run\n"), page.find(".SH ENVIRONMENT\n"));
  EXPECT_TRUE(page.ends_with(entries)) << page;
}

}  // namespace
}  // namespace moegate
