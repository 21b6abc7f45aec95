// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_view.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/base/closest.h"
#include "harness/base/error.h"
#include "harness/base/natural_less.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

bool same_letters(const std::string& a, const std::string& b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// What a cell is ordered by.
struct SortKey {
  enum Kind { number, text, empty } kind;
  double value = 0;
  std::string words;
};

SortKey sort_key(const Table::Cell& cell) {
  if (cell.text.empty()) return {SortKey::empty};
  const bool starts = cell.text.find_first_of("0123456789") <= cell.text.find_first_not_of("+-.");
  const auto leading = starts ? leading_number(cell.text) : std::nullopt;
  if (leading) return {SortKey::number, leading->value};
  return {SortKey::text, 0, cell.text};
}

bool comes_before(const SortKey& a, const SortKey& b, bool descending) {
  if (a.kind != b.kind) return a.kind < b.kind;
  const SortKey& first = descending ? b : a;
  const SortKey& second = descending ? a : b;
  if (a.kind == SortKey::number) return first.value < second.value;
  return NaturalLess()(first.words, second.words);
}

}  // namespace

std::optional<size_t> find_column(const Table& table, const std::string& name) {
  const auto& columns = table.columns;
  auto at = std::ranges::find(columns, name);
  if (at == columns.end()) {
    at = std::ranges::find_if(columns, [&](const auto& c) { return same_letters(c, name); });
  }
  if (at == columns.end()) return std::nullopt;
  return static_cast<size_t>(at - columns.begin());
}

size_t column_of(const Table& table, const std::string& flag, const std::string& name) {
  if (const auto column = find_column(table, name)) return *column;
  usage_error("{}: no column '{}'{}; there are: {}", flag, name, did_you_mean(name, table.columns),
              fmt::join(table.columns, ", "));
}

Table with_columns(const Table& table, const std::vector<size_t>& columns) {
  Table part;
  for (const size_t i : columns) part.columns.push_back(table.columns[i]);
  for (const auto& row : table.rows) {
    auto& cells = part.rows.emplace_back();
    for (const size_t i : columns) cells.push_back(row[i]);
  }
  return part;
}

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

void sort_rows(Table& table, size_t column, bool descending) {
  std::vector<std::pair<SortKey, size_t>> order;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    order.emplace_back(sort_key(table.rows[i][column]), i);
  }
  std::ranges::stable_sort(order, [descending](const auto& a, const auto& b) {
    return comes_before(a.first, b.first, descending);
  });
  std::vector<std::vector<Table::Cell>> rows;
  for (const auto& [key, i] : order) rows.push_back(std::move(table.rows[i]));
  table.rows = std::move(rows);
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
