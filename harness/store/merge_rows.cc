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

/// Finds a row by the columns that name it.
std::string find_by_name(const KeptOnce& kept) {
  std::vector<std::string> terms;
  for (const std::string& column : kept.name) {
    terms.push_back(fmt::format("{} = ?{}", column, terms.size() + 1));
  }
  return fmt::format("SELECT {} FROM {} WHERE {}", kept.number, kept.table,
                     fmt::join(terms, " AND "));
}

}  // namespace

bool TableShape::has(const std::string& column) const {
  return std::ranges::count(columns, column) > 0;
}

TableShapes shapes_of(Database& db) {
  TableShapes shapes;
  Statement q(db,
              "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (q.step()) shapes[q.text(0)] = shape_of(db, q.text(0));
  return shapes;
}

NumberOf number_in(const Numbers& numbers) {
  return [&numbers](int64_t from) -> std::optional<int64_t> {
    const auto at = numbers.find(from);
    if (at == numbers.end()) return std::nullopt;
    return at->second;
  };
}

RowCopy::RowCopy(Database& in, Database& out, const TableShape& table,
                 const NumberOfByColumn& numbers, const std::string& where, Twice twice,
                 const std::string& own)
    : table_(table),
      rows_(in, fmt::format("{} WHERE {}", select_from(table), where)),
      insert_(out, twice == Twice::greater ? insert_greater(table) : insert_into(table)) {
  for (const std::string& column : table.columns) {
    const auto at = numbers.find(column);
    numbers_.push_back(at == numbers.end() || column == own ? nullptr : &at->second);
  }
  if (!own.empty()) own_ = place_of(own);
}

int RowCopy::place_of(const std::string& column) const {
  const auto at = std::ranges::find(table_.columns, column);
  if (at == table_.columns.end()) throw Error(Exit::internal, table_.name + " has no " + column);
  return static_cast<int>(at - table_.columns.begin());
}

int64_t RowCopy::integer(const std::string& column) const {
  return rows_.integer(place_of(column));
}

bool RowCopy::put(std::optional<int64_t> number) {
  for (int at = 0; at < static_cast<int>(numbers_.size()); ++at) {
    const NumberOf* number_of = numbers_[static_cast<size_t>(at)];
    if (at == own_) {
      number ? insert_.bind_at(at + 1, *number) : insert_.bind_null(at + 1);
    } else if (!set_.empty() && set_.contains(at)) {
      insert_.bind_at(at + 1, set_.at(at));
    } else if (number_of == nullptr) {
      insert_.bind_from(at + 1, rows_, at);
    } else if (const auto to = (*number_of)(rows_.integer(at))) {
      insert_.bind_at(at + 1, *to);
    } else {
      return false;
    }
  }
  insert_.run();
  return true;
}

int64_t copy_row(Database& in, Database& out, const TableShape& table, const std::string& own,
                 int64_t number, const NumberOfByColumn& numbers,
                 const std::map<std::string, std::string>& instead) {
  RowCopy row(in, out, table, numbers, own + " = ?1", RowCopy::Twice::refused, own);
  for (const auto& [column, text] : instead) row.set(column, text);
  if (!row.of(number).step() || !row.put()) {
    in.damaged(fmt::format("{} {} of table {} is not whole", own, number, table.name));
  }
  return out.last_id();
}

KeptRows::KeptRows(Database& in, Database& out, const TableShapes& shapes, const KeptOnce& kept,
                   const std::vector<std::string>& parts, const NumberOfByColumn& numbers)
    : kept_(kept),
      out_(out),
      row_(in, out, shapes.at(kept.table), numbers, fmt::format("{} = ?1", kept.number),
           RowCopy::Twice::refused, kept.number),
      find_(out, find_by_name(kept)) {
  for (const std::string& column : kept.name) name_.push_back(row_.place_of(column));
  for (const std::string& part : parts) {
    parts_.emplace_back(in, out, shapes.at(part), numbers, fmt::format("{} = ?1", kept.number),
                        RowCopy::Twice::greater);
  }
}

std::optional<int64_t> KeptRows::number_of(int64_t from) {
  const auto known = known_.find(from);
  if (known != known_.end()) return known->second;
  if (!row_.of(from).step()) return std::nullopt;
  find_.again();
  for (size_t i = 0; i < name_.size(); ++i) {
    find_.bind_from(static_cast<int>(i) + 1, row_.row(), name_[i]);
  }
  const bool there = find_.step();
  int64_t to = there ? find_.integer(0) : 0;
  find_.reset();
  if (!there) {
    row_.put();
    to = out_.last_id();
  }
  row_.end();
  known_[from] = to;
  for (RowCopy& part : parts_) part.of(from).put_all();
  if (there && on_known) on_known(from, to);
  return to;
}

}  // namespace moegate
