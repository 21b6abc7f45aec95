// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/suite.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {
namespace fs = std::filesystem;

const std::vector<OpDescription> kOperators = {
    {.name = "suite_test_op",
     .help = "for suite_test",
     .params = {{"rows", "", "rows"}, {"width", "", "width"}, {"unit", "32", "unit"}},
     .yardstick = ""},
    {.name = "suite_test_other",
     .help = "for suite_test",
     .params = {{"rows", "", "rows"}, {"depth", "3", "depth"}},
     .yardstick = ""}};

/// A folder with suites/ and reports/ that is MOEGATE_HOME for the test.
class SuiteTest : public testing::Test {
 protected:
  SuiteTest() {
    fs::create_directories(home_ / "suites");
    fs::create_directories(home_ / "reports");
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(home_ / "suites" / (name + ".suite")) << text;
  }

  std::vector<std::string> keys(const std::string& text, const Axes& axes = {}) {
    write("s", text);
    std::vector<std::string> keys;
    for (const Case& c : load_suite("s", axes, kOperators)) keys.push_back(c.key());
    return keys;
  }

  /// Expects Error(usage) with one line that has all `parts`.
  void expect_refused(const std::string& text, const std::vector<std::string>& parts,
                      const Axes& axes = {}) {
    write("s", text);
    expect_load_refused("s", parts, axes);
  }

  void expect_load_refused(const std::string& name, const std::vector<std::string>& parts,
                           const Axes& axes = {}) {
    const std::string message = refusal_of([&] { load_suite(name, axes, kOperators); });
    EXPECT_NE(message, "accepted") << name;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    }
  }

  ScratchFolder home_;
  const ScopedVariable named_{"MOEGATE_HOME", home_.path()};
};

using Keys = std::vector<std::string>;

TEST_F(SuiteTest, ProductHasTheFirstAxisSlowest) {
  EXPECT_EQ(keys("op = suite_test_op\nwidth = 4, 8\n[a]\nrows = 1, 2\n"),
            (Keys{"suite_test_op/rows=1,width=4", "suite_test_op/rows=2,width=4",
                  "suite_test_op/rows=1,width=8", "suite_test_op/rows=2,width=8"}));
}

TEST_F(SuiteTest, SectionOverridesAGlobalInItsPlace) {
  EXPECT_EQ(keys("op = suite_test_op\nwidth = 4\nrows = 1\n[a]\nrows = 2\nwidth = 8, 16\n"),
            (Keys{"suite_test_op/rows=2,width=8", "suite_test_op/rows=2,width=16"}));
}

TEST_F(SuiteTest, FillsInDefaultsAndNamesThePlace) {
  write("s", "op = suite_test_op\n[gpt-oss-120b]  # comment\nrows = 1  # comment\nwidth = 2\n");
  const std::vector<Case> cases = load_suite("s", {}, kOperators);
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].get("unit"), "32");
  EXPECT_EQ(cases[0].get("launch"), "stream");
  EXPECT_EQ(cases[0].get("cache"), "cold");
  EXPECT_EQ(cases[0].get("seed"), "1");
  EXPECT_EQ(cases[0].get("rows"), "1");
  EXPECT_EQ(cases[0].where(), "s.suite [gpt-oss-120b]");
}

TEST_F(SuiteTest, ReadsEachSectionOfItsOwnOperator) {
  EXPECT_EQ(keys("rows = 1\n[a.b]\nop = suite_test_op\nwidth = 2\n\n[a]\nop=suite_test_other\n"),
            (Keys{"suite_test_op/rows=1,width=2", "suite_test_other/rows=1"}));
}

TEST_F(SuiteTest, ListsEqualKeysOnceAndTheFirstWins) {
  write("s", "op = suite_test_op\nrows = 1, 1\nwidth = 2\n[a]\n[b]\nunit = 32, 16\n");
  const std::vector<Case> cases = load_suite("s", {}, kOperators);
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].section, "a");
  EXPECT_EQ(cases[1].key(), "suite_test_op/rows=1,unit=16,width=2");
}

TEST_F(SuiteTest, AxesReplaceAddAndComplete) {
  const std::string text = "op = suite_test_op\n[a]\nrows = 1, 2\n";
  EXPECT_EQ(keys(text, {{"rows", {"7"}}, {"width", {"5"}}, {"cache", {"cold", "warm"}}}),
            (Keys{"suite_test_op/rows=7,width=5", "suite_test_op/cache=warm,rows=7,width=5"}));
}

TEST_F(SuiteTest, AnAxisAppliesWhereItsParameterExists) {
  EXPECT_EQ(keys("rows = 1\n[a]\nop = suite_test_op\nwidth = 2\n[b]\nop = suite_test_other\n",
                 {{"depth", {"9"}}}),
            (Keys{"suite_test_op/rows=1,width=2", "suite_test_other/depth=9,rows=1"}));
}

TEST_F(SuiteTest, AnAxisCanBeOfOneOperator) {
  EXPECT_EQ(keys("rows = 1\n[a]\nop = suite_test_op\nwidth = 2\n[b]\nop = suite_test_other\n",
                 {{"suite_test_op.rows", {"7"}}}),
            (Keys{"suite_test_op/rows=7,width=2", "suite_test_other/rows=1"}));
}

TEST_F(SuiteTest, RefusesAxesNobodyReads) {
  const std::string text = "op = suite_test_op\n[a]\nrows = 1\nwidth = 2\n";
  expect_refused(text, {"axis depth", "s.suite", "rows, width, unit, launch"}, {{"depth", {"1"}}});
  expect_refused(text, {"axis op"}, {{"op", {"suite_test_other"}}});
  expect_refused(text, {"axis suite_test_op.depth"}, {{"suite_test_op.depth", {"1"}}});
  expect_refused(text, {"axis rows", "empty"}, {{"rows", {}}});
  expect_refused(text, {"axis rows", "empty"}, {{"rows", {"1", ""}}});
}

TEST_F(SuiteTest, RefusesMalformedLines) {
  for (const std::string line : {"rows", "= 1", "ro ws = 1", "[a", "a]", "[]", "[a b]", "[a.]"}) {
    expect_refused("op = suite_test_op\n[x]\n" + line + "\n", {"s.suite:3:", "malformed", line});
  }
}

TEST_F(SuiteTest, RefusesACommentThatCutsAWord) {
  expect_refused("op = suite_test_op\n[x]\nrows = 1#2\n", {"s.suite:3:", "'#'", "rows = 1#2"});
}

TEST_F(SuiteTest, RefusesRepetitions) {
  expect_refused("op = suite_test_op\n[x]\nrows = 1\nwidth = 2\nrows = 3\n",
                 {"s.suite:5:", "'rows'", "line 3"});
  expect_refused("rows = 1\nrows = 2\n[x]\n", {"s.suite:2:", "'rows'", "line 1"});
  expect_refused("op = suite_test_op\n[x]\n[y]\n[x]\n", {"s.suite:4:", "[x]", "line 2"});
}

TEST_F(SuiteTest, RefusesEmptyLists) {
  for (const std::string value : {"", " ", ",", "1,", ",1", "1,,2"}) {
    expect_refused("op = suite_test_op\n[x]\nwidth = 1\nrows =" + value + "\n",
                   {"s.suite:4:", "[x]", "'rows'", "empty"});
  }
}

TEST_F(SuiteTest, RefusesAFileWithoutSections) {
  expect_refused("", {"s.suite", "no [section]"});
  expect_refused("op = suite_test_op\nrows = 1\nwidth = 1\n", {"s.suite", "no [section]"});
}

TEST_F(SuiteTest, RefusesMissingAndUnknownOperators) {
  expect_refused("rows = 1\n[x]\nwidth = 2\n", {"s.suite:2:", "[x]", "no 'op'"});
  expect_refused("[x]\nop = conv\n", {"s.suite:2:", "[x]", "conv", "suite_test_op"});
  expect_refused("[x]\nop = suite_test_op, suite_test_other\n", {"s.suite:2:", "[x]", "list"});
}

TEST_F(SuiteTest, RefusesMissingAndUnknownParameters) {
  expect_refused("op = suite_test_op\n[x]\nrows = 1\n",
                 {"s.suite:2:", "[x]", "'width'", "suite_test_op"});
  expect_refused("op = suite_test_op\n[x]\nrows = 1\nwidth = 1\ntopk = 2\n",
                 {"s.suite:5:", "[x]", "'topk'", "suite_test_op", "rows, width, unit"});
  expect_refused("op = suite_test_op\ndepth = 2\n[x]\nrows = 1\nwidth = 1\n",
                 {"s.suite:2:", "[x]", "'depth'"});
}

TEST_F(SuiteTest, ReadsWindowsLineEndsAndNoFinalNewline) {
  EXPECT_EQ(keys("op = suite_test_op\r\n[a]\r\nrows = 1\r\nwidth = 2"),
            (Keys{"suite_test_op/rows=1,width=2"}));
}

TEST_F(SuiteTest, KeepsColonsSlashesAndEqualsInValues) {
  EXPECT_EQ(keys("op = suite_test_op\n[a]\nrows = replay:a/b=c.npy\nwidth = hot:1:0.5\n"),
            (Keys{"suite_test_op/rows=replay:a/b=c.npy,width=hot:1:0.5"}));
}

TEST_F(SuiteTest, TheSectionRunHasNoCases) {
  const std::string cases =
      "op = suite_test_op\n[run]\nrounds = 3\nfilter = a, b\nreport = x, y\n[m]\n"
      "rows = 1\nwidth = 2\n";
  EXPECT_EQ(keys(cases).size(), 1u);
  const Recipe recipe = recipe_of("s");
  using Flags = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(recipe.flags, (Flags{{"rounds", "3"}, {"filter", "a,b"}}));
  EXPECT_EQ(recipe.reports, (std::vector<std::string>{"x", "y"}));
  write("plain", "op = suite_test_op\n[m]\nrows = 1\nwidth = 2\n");
  EXPECT_TRUE(recipe_of("plain").flags.empty());
  write("bad", "[run]\nround = 3\n[m]\nop = suite_test_op\n");
  const std::string why = refusal_of([] { recipe_of("bad"); });
  EXPECT_NE(why.find("bad.suite:2: [run] has no key 'round' (did you mean 'rounds'?)"),
            std::string::npos)
      << why;
}

TEST_F(SuiteTest, FindsByNameOrPath) {
  write("s", "op = suite_test_op\n[a]\nrows = 1\nwidth = 2\n");
  const std::string path = (home_ / "suites/s.suite").string();
  EXPECT_EQ(load_suite(path, {}, kOperators).at(0).suite, "s");
  expect_load_refused("t", {"no suite 't'", "known: s"});
  expect_load_refused("./nowhere/t", {"'./nowhere/t'", "cannot be read"});
  expect_load_refused("t.suite", {"'t.suite'", "cannot be read"});
  expect_load_refused(home_.path().string(), {"cannot be read"});
}

TEST_F(SuiteTest, ListsSuitesWithTheirComment) {
  write("b", "# Second one\nop = x\n");
  write("a", "op = x  # no comment line\n");
  std::ofstream(home_ / "suites/README.md") << "# no suite\n";
  const std::vector<std::pair<std::string, std::string>> expected = {{"a", ""},
                                                                     {"b", "Second one"}};
  EXPECT_EQ(list_suites(), expected);
}

TEST_F(SuiteTest, AProductThatFillsTheMemoryIsRefused) {
  std::string thousand = "1";
  for (int i = 2; i <= 1001; ++i) thousand += fmt::format(", {}", i);
  expect_refused("op = suite_test_op\n[a]\nrows = " + thousand + "\nwidth = " + thousand + "\n",
                 {"section [a] has 1002001 cases"});
  // Nor does it help to write it in parts.
  std::string text = "op = suite_test_op\nwidth = 1\nrows = " + thousand + "\n";
  for (int i = 1; i <= 100; ++i) text += fmt::format("[s{0}]\nunit = {0}\n", i);
  expect_refused(text, {"section [s100] has 1001 cases after 99099, in all more than 100000"});
}

}  // namespace
}  // namespace moegate::test
