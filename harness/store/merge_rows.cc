// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace moegate {
namespace {

TableShape shape_of(Database& db, const std::string& name) {
  TableShape table{name, {}, {}};
  Statement q(db, "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid");
  q.bind(name);
  while (q.step()) {
    table.columns.push_back(q.text(0));
    if (q.integer(1) > 0) table.key.push_back(q.text(0));
  }
  return table;
}

/// "?1, ?2, ?3"
std::string places(size_t count) {
  std::string text;
  for (size_t i = 1; i <= count; ++i) text += fmt::format("{}?{}", i == 1 ? "" : ", ", i);
  return text;
}

std::string insert_into(const TableShape& table) {
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table.name, fmt::join(table.columns, ", "),
                     places(table.columns.size()));
}

std::string select_from(const TableShape& table) {
  return fmt::format("SELECT {} FROM {}", fmt::join(table.columns, ", "), table.name);
}

/// INSERT, or the greater of two rows. NULL is put in the place of a text, so that any two rows compare.
std::string insert_greater(const TableShape& table) {
  std::vector<std::string> sets, ours, theirs;
  for (const std::string& column : table.columns) {
    if (std::ranges::count(table.key, column) > 0) continue;
    sets.push_back(fmt::format("{0} = excluded.{0}", column));
    ours.push_back(fmt::format("ifnull({}.{}, '')", table.name, column));
    theirs.push_back(fmt::format("ifnull(excluded.{}, '')", column));
  }
  const std::string insert =
      fmt::format("{} ON CONFLICT ({})", insert_into(table), fmt::join(table.key, ", "));
  if (sets.empty()) return insert + " DO NOTHING";
  return fmt::format("{} DO UPDATE SET {} WHERE ({}) > ({})", insert, fmt::join(sets, ", "),
                     fmt::join(theirs, ", "), fmt::join(ours, ", "));
}

/// Binds a row's values to the places of an INSERT; `own` stays NULL, which is the next number. False for a row with a
/// number that is not known.
bool bind_row(Statement& insert, const Statement& row, const TableShape& table,
              const std::string& own, const NumbersByColumn& numbers) {
  insert.again();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const int at = static_cast<int>(i);
    const auto known = numbers.find(table.columns[i]);
    if (known == numbers.end()) {
      if (table.columns[i] != own) insert.bind_from(at + 1, row, at);
      continue;
    }
    const auto number = known->second.find(row.integer(at));
    if (number == known->second.end()) return false;
    if (table.columns[i] != own) insert.bind_at(at + 1, number->second);
  }
  return true;
}

int place_of(const TableShape& table, const std::string& column) {
  const auto at = std::ranges::find(table.columns, column);
  if (at == table.columns.end()) throw Error(Exit::internal, table.name + " has no " + column);
  return static_cast<int>(at - table.columns.begin());
}

/// Finds a row by the columns that name it, whose values stand in the places of an INSERT of the whole row.
std::string find_by_name(const TableShape& table, const std::string& own,
                         const std::vector<std::string>& name) {
  std::vector<std::string> terms;
  for (const std::string& column : name) {
    terms.push_back(fmt::format("{} = ?{}", column, place_of(table, column) + 1));
  }
  return fmt::format("SELECT {} FROM {} WHERE {}", own, table.name, fmt::join(terms, " AND "));
}

}  // namespace

std::map<std::string, TableShape> shapes_of(Database& db) {
  std::map<std::string, TableShape> shapes;
  Statement q(db,
              "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (q.step()) shapes[q.text(0)] = shape_of(db, q.text(0));
  return shapes;
}

void copy_rows(Database& in, Database& out, const TableShape& table,
               const NumbersByColumn& numbers) {
  Statement rows(in, select_from(table));
  Statement insert(out, insert_greater(table));
  while (rows.step()) {
    if (bind_row(insert, rows, table, "", numbers)) insert.run();
  }
}

Numbers copy_named_rows(Database& in, Database& out, const TableShape& table,
                        const std::string& own, const std::vector<std::string>& name,
                        const NumbersByColumn& numbers) {
  Statement rows(in, select_from(table));
  Statement insert(out, fmt::format("{} ON CONFLICT ({}) DO NOTHING", insert_into(table),
                                    fmt::join(name, ", ")));
  Statement find(out, find_by_name(table, own, name));
  const int at = place_of(table, own);
  Numbers copied;
  while (rows.step()) {
    if (!bind_row(insert, rows, table, own, numbers)) continue;
    insert.run();
    for (const std::string& column : name) {
      const int place = place_of(table, column);
      const auto known = numbers.find(column);
      if (known == numbers.end()) {
        find.bind_from(place + 1, rows, place);
      } else {
        find.bind_at(place + 1, known->second.at(rows.integer(place)));
      }
    }
    if (!find.step()) out.fail("a row that was written is not there");
    copied[rows.integer(at)] = find.integer(0);
    find.again();
  }
  return copied;
}

int64_t copy_row(Database& in, Database& out, const TableShape& table, const std::string& own,
                 int64_t number, const NumbersByColumn& numbers,
                 const std::map<std::string, std::string>& instead) {
  Statement row(in, fmt::format("{} WHERE {} = ?1", select_from(table), own));
  Statement insert(out, insert_into(table));
  if (!row.bind(number).step() || !bind_row(insert, row, table, own, numbers)) {
    in.damaged(fmt::format("{} {} of table {} is not whole", own, number, table.name));
  }
  for (const auto& [column, value] : instead) insert.bind_at(place_of(table, column) + 1, value);
  insert.run();
  return out.last_id();
}

}  // namespace moegate
