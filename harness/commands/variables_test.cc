// SPDX-License-Identifier: Apache-2.0
// The list of variables is the README's table, and each is read where that says.
#include "harness/commands/variables.h"

#include <gtest/gtest.h>

#include <sstream>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

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

TEST(Variables, AreThoseOfTheReadme) {
  const auto rows = table_of_variables();
  ASSERT_EQ(rows.size(), variables().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 3u);
    EXPECT_EQ(without_quotes(rows[i][0]), variables()[i].name);
    EXPECT_EQ(rows[i][1], variables()[i].about);
  }
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
}  // namespace moegate
