// SPDX-License-Identifier: Apache-2.0
// For the tests of reports: asks them of a store whose runs have known numbers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "harness/base/test_fixture.h"
#include "harness/store/query_report.h"
#include "harness/store/report_runs_fixture.h"

namespace moegate::test {

namespace fs = std::filesystem;

inline const fs::path kSource = MOEGATE_SOURCE_DIR;

using Cells = std::map<std::string, std::string>;

class ReportTest : public StoredRuns {
 protected:
  Table report(const std::string& name, int64_t run = 1) {
    Store store = Store::open(db_, Store::Mode::read);
    return run_report(store, find_report(name), {run});
  }
  std::string at(const Table& table, size_t row, const std::string& column) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i] == column) return table.rows.at(row).at(i).text;
    }
    ADD_FAILURE() << "no column " << column;
    return "";
  }
  /// The cells of a column by those of another.
  Cells column(const Table& table, const std::string& name, const std::string& of = "variant") {
    Cells cells;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      cells[at(table, row, of)] = at(table, row, name);
    }
    return cells;
  }
  /// How a report of somebody's own ends.
  std::pair<Exit, std::string> end_of(const std::string& sql) {
    const fs::path path = dir_ / "own.sql";
    std::ofstream(path) << sql;
    try {
      report(path.string());
    } catch (const Error& e) {
      return {e.code(), e.what()};
    }
    return {Exit::ok, "accepted"};
  }
  std::string refusal(const std::string& sql) {
    const auto [exit, text] = end_of(sql);
    if (exit != Exit::ok) {
      EXPECT_EQ(exit, Exit::usage) << text;
    }
    return text;
  }

  const ScopedVariable home_{"MOEGATE_HOME", kSource};
};

}  // namespace moegate::test
