// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_view.h"

#include <algorithm>

namespace moegate {
namespace {

Table with_columns(const Table& table, const std::vector<size_t>& columns) {
  Table part;
  for (const size_t i : columns) part.columns.push_back(table.columns[i]);
  for (const auto& row : table.rows) {
    auto& cells = part.rows.emplace_back();
    for (const size_t i : columns) cells.push_back(row[i]);
  }
  return part;
}

}  // namespace

Table without_empty_columns(const Table& table) {
  if (table.rows.empty()) return table;
  std::vector<size_t> kept;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool any = std::ranges::any_of(
        table.rows, [i](const auto& row) { return !row[i].text.empty() || !row[i].mark.empty(); });
    if (any) kept.push_back(i);
  }
  return with_columns(table, kept);
}

Table most_important(const Table& table, size_t most,
                     const std::function<bool(const std::vector<Table::Cell>&)>& matters) {
  std::vector<size_t> kept;
  for (const bool wanted : {true, false}) {
    for (size_t i = 0; i < table.rows.size() && kept.size() < most; ++i) {
      if (matters(table.rows[i]) == wanted) kept.push_back(i);
    }
  }
  std::ranges::sort(kept);
  Table part{table.columns, {}};
  for (const size_t i : kept) part.rows.push_back(table.rows[i]);
  return part;
}

}  // namespace moegate
