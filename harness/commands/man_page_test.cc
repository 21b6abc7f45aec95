// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/man_page.h"

#include <gtest/gtest.h>

#include <sstream>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/base/text.h"

namespace moegate::test {
namespace {

TEST(ManPage, TextIsShownAsItIs) {
  EXPECT_EQ(roff_escaped("a-b\\c"), "a\\-b\\ec");
  EXPECT_EQ(roff_escaped(".sql"), "\\&.sql");
  EXPECT_EQ(roff_escaped("'x' ~ ^"), "\\&\\(aqx\\(aq \\(ti \\(ha");
}

Verb some_verb(const char* name, const char* about) {
  return {{name}, about, {"[options]"}, {"moegate an example", "moegate another"}, {}};
}

TEST(ManPage, AGroupIsListedOnce) {
  const ScopedVariable home("MOEGATE_HOME", MOEGATE_SOURCE_DIR);
  std::string suite;
  int seed = 7;
  Flags run("Which"), list("Which");
  run.add(flag("suite", suite, "by name"));
  list.add(flag("suite", suite, "by name")).add(flag("seed", seed, "of inputs"));
  const Verb runs = some_verb("run", "runs"), ab = some_verb("ab", "compares"),
             lists = some_verb("list", "lists");
  const std::string page = man_page("1.2", {{&runs, run}, {&ab, run}, {&lists, list}});
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
}

TEST(ManPage, SectionsFollowTheCommands) {
  const ScopedVariable home("MOEGATE_HOME", MOEGATE_SOURCE_DIR);
  const Verb runs = some_verb("run", "runs");
  const std::string page = man_page("1.2", {{&runs, Flags()}});
  size_t at = page.find(".SS moegate run\n");
  for (const char* section :
       {".SH EXAMPLES\n", ".SH EXIT STATUS\n", ".SH FILES\n", ".SH ENVIRONMENT\n"}) {
    const size_t next = page.find(section);
    ASSERT_NE(next, std::string::npos) << section;
    EXPECT_LT(at, next) << section;
    at = next;
  }
  EXPECT_NE(page.find("\\fBmoegate an example\\fR\n"), std::string::npos) << page;
  EXPECT_NE(page.find(".TP\n\\fB130\\fR\n"), std::string::npos) << page;
}

// The list of variables is the README's table, and each is read where that says.

const std::string kRoom = std::string(MOEGATE_SOURCE_DIR) + "/harness/commands/";

std::string without_quotes(std::string text) {
  std::erase(text, '`');
  return text;
}

/// The cells of the README's table of variables, heading and rule left out.
std::vector<std::vector<std::string>> table_of_variables() {
  const std::string readme = read_file(kRoom + "README.md");
  const size_t from = readme.find("## Variables of the environment");
  std::istringstream lines(readme.substr(from, readme.find("\n## ", from) - from));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    std::istringstream cells(line.substr(1));
    auto& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(trimmed(cell));
  }
  return rows;
}

/// The names or files of a cell: "`A`, `B`".
std::vector<std::string> words_of(const std::string& cell) {
  std::vector<std::string> words;
  std::istringstream text(without_quotes(cell));
  for (std::string word; std::getline(text, word, ',');) words.push_back(trimmed(word));
  return words;
}

/// As roff; words in backquotes are bold.
std::string marked_up(const std::string& text) {
  std::string roff;
  bool bold = false;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '`'); bold = !bold) {
    const std::string escaped = part.empty() ? "" : roff_escaped(part);
    roff += bold ? "\\fB" + escaped + "\\fR" : escaped;
  }
  return roff;
}

TEST(Variables, AreThoseOfTheReadme) {
  const ScopedVariable home("MOEGATE_HOME", MOEGATE_SOURCE_DIR);
  std::string entries;
  for (const auto& row : table_of_variables()) {
    ASSERT_EQ(row.size(), 3u);
    entries +=
        ".TP\n" + marked_up("`" + without_quotes(row[0]) + "`") + "\n" + marked_up(row[1]) + "\n";
  }
  const std::string page = man_page("1.2", {});
  EXPECT_TRUE(page.ends_with("\\&.\n" + entries)) << page << "\nis not\n" << entries;
}

TEST(Variables, AreReadWhereTheReadmeSays) {
  for (const auto& row : table_of_variables()) {
    for (const std::string& file : words_of(row.at(2))) {
      const std::string source = read_file(kRoom + file);
      for (const std::string& name : words_of(row.at(0))) {
        const std::string stem = name.substr(0, name.find('*'));
        EXPECT_NE(source.find('"' + stem), std::string::npos) << name << " in " << file;
      }
    }
  }
}

}  // namespace
}  // namespace moegate::test
