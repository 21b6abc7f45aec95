// SPDX-License-Identifier: Apache-2.0
#include "harness/report/cause_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace moegate {
namespace {

std::string number_cell(double value) {
  return fmt::format("{:.6g}", value);
}

std::string change_cell(const CauseNumber& n) {
  return n.base != 0 ? percent(n.head / n.base - 1) : "";
}

std::vector<Table::Cell> number_cells(const CauseNumber& n) {
  return {{n.name},
          {number_cell(n.base), true},
          {number_cell(n.head), true},
          {n.unit},
          {change_cell(n), true}};
}

Table numbers_table(const Cause& cause) {
  Table table{{"Number", "Base", "Head", "Unit", "Change"}, {}};
  for (const CauseNumber& n : cause.numbers) table.rows.push_back(number_cells(n));
  return table;
}

}  // namespace

std::vector<CausedRow> caused_rows(const GateResult& result) {
  std::vector<CausedRow> rows;
  for (const CaseVerdict& v : result.cases) {
    if (!v.cause) continue;
    rows.push_back({v.id.key, v.id.variant, effect_of(v).share, *v.cause});
  }
  std::ranges::stable_sort(rows, std::greater<>(), &CausedRow::effect);
  return rows;
}

void add_causes(Page& page, int rank, const std::vector<CausedRow>& rows) {
  if (rows.empty()) return;
  List list;
  for (const CausedRow& row : rows) {
    list.items.push_back({code(row.key), plain(" "), code(row.variant),
                          plain(fmt::format(" {}: {}", percent(row.effect), row.cause.sentence))});
  }
  page.sections.push_back({rank, {Heading{fmt::format("Why ({})", rows.size())}, std::move(list)}});
}

std::vector<Block> numbers_of_row(const CausedRow& row) {
  Paragraph head{{{code(row.key), plain(" "), code(row.variant)}}};
  if (!row.cause.also.empty()) {
    head.lines.push_back({plain(fmt::format("Also: {}.", fmt::join(row.cause.also, "; ")))});
  }
  return {std::move(head), Rows{numbers_table(row.cause)}};
}

void add_cause_numbers(Page& page, int rank, const std::vector<CausedRow>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cause.numbers.empty()) continue;
    Section section{rank, numbers_of_row(rows[i])};
    section.folded = fmt::format("Numbers of row {} of {}", i + 1, rows.size());
    page.sections.push_back(std::move(section));
  }
}

Table cause_table(const std::vector<CausedRow>& rows) {
  Table table{
      {"case", "variant", "effect", "kind", "cause", "number", "base", "head", "unit", "change"},
      {}};
  for (const CausedRow& row : rows) {
    const std::vector<Table::Cell> first = {{row.key},
                                            {row.variant},
                                            {fmt::format("{:.5g}", row.effect), true},
                                            {name_of(row.cause.kind)},
                                            {row.cause.sentence}};
    if (row.cause.numbers.empty()) {
      table.rows.push_back(first);
      table.rows.back().resize(table.columns.size());
    }
    for (const CauseNumber& n : row.cause.numbers) {
      table.rows.push_back(first);
      std::ranges::move(number_cells(n), std::back_inserter(table.rows.back()));
    }
  }
  return table;
}

}  // namespace moegate
