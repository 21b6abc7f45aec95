// SPDX-License-Identifier: Apache-2.0
// For tests: what a store holds as text, whatever its rows are numbered.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "harness/store/merge_rows.h"

namespace moegate::test {

/// Every row of every table, sorted, a line each. A number that another store need not have is
/// replaced by the name of what it is the number of.
inline std::string content_of(Database& db) {
  const std::map<std::string, std::string> names = {
      {"device_id", "SELECT device_id, uuid || ' ' || class || ' ' || driver FROM device"},
      {"run_id", "SELECT run_id, uuid FROM run"},
      {"case_id", "SELECT case_id, key FROM bench_case"},
      {"process_id", "SELECT process_id, uuid FROM process"},
      {"shape_id",
       "SELECT shape_id, name || ' ' || grid || ' ' || block || ' ' || cluster || ' ' || registers "
       "|| ' ' || static_shared || ' ' || dynamic_shared || ' ' || local_bytes FROM launch_shape"},
      {"metric_id", "SELECT metric_id, name || ' ' || unit FROM metric_name"},
      {"verification_id", "SELECT verification_id, digest FROM verification"},
      {"environment_id", "SELECT environment_id, digest FROM environment"},
      {"result_id",
       "SELECT result_id, uuid || ' ' || key || ' ' || variant FROM result JOIN process USING "
       "(process_id) JOIN bench_case USING (case_id)"}};
  std::map<std::string, std::map<std::string, std::string>> named;
  for (const auto& [column, sql] : names) {
    Statement q(db, sql);
    while (q.step()) named[column][q.text(0)] = q.text(1);
  }
  std::multiset<std::string> lines;
  for (const auto& [name, table] : shapes_of(db)) {
    std::string columns;
    for (const std::string& c : table.columns) {
      columns += fmt::format("{}quote({})", columns.empty() ? "" : ", ", c);
    }
    Statement q(db, fmt::format("SELECT {} FROM {}", columns, name));
    while (q.step()) {
      std::string line = name;
      for (size_t i = 0; i < table.columns.size(); ++i) {
        const std::string& column = table.columns[i];
        const std::string value = q.text(static_cast<int>(i));
        line +=
            fmt::format(" {}={}", column, names.contains(column) ? named[column][value] : value);
      }
      lines.insert(line + "\n");
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace moegate::test
