// SPDX-License-Identifier: Apache-2.0
// Rows of the store by the field lists of values (values/fields.h): INSERT, SELECT and reading back
// name the columns that a list names, so that a field is written once and none is lost.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/store/sqlite.h"
#include "harness/values/result_fields.h"

namespace moegate {

/// What a column holds, as the value of a field.
template <class V>
void read_column(const Statement& q, int at, V& value) {
  if constexpr (std::is_same_v<V, std::string>) {
    value = q.view(at);  // keeps the memory of what it held
  } else if constexpr (std::is_enum_v<V>) {
    try {
      parse_name(q.text(at), value);
    } catch (const std::invalid_argument& e) {
      q.database().damaged(e.what());
    }
  } else if constexpr (std::is_same_v<V, uint64_t>) {
    const std::string digits = q.text(at);
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, value, 16);
    if (error != std::errc() || end != last) {
      q.database().damaged(fmt::format("{} '{}' is no hash", q.column_name(at), digits));
    }
  } else if constexpr (std::is_floating_point_v<V>) {
    value = q.real(at);
  } else if constexpr (std::is_same_v<V, bool>) {
    value = q.integer(at) != 0;
  } else {
    value = static_cast<V>(q.integer(at));
  }
}

/// The columns of a statement's current row by their names. Throws Error(internal) for a name that
/// the statement does not have.
class Columns {
 public:
  explicit Columns(const Statement& q) : q_(q) {
    for (int i = 0; i < q.columns(); ++i) at_[q.column_name(i)] = i;
  }
  int64_t integer(const std::string& name) const { return q_.integer(at(name)); }
  double real(const std::string& name) const { return q_.real(at(name)); }
  std::string text(const std::string& name) const { return q_.text(at(name)); }
  bool is_null(const std::string& name) const { return q_.is_null(at(name)); }
  int at(const std::string& name) const {
    const auto found = at_.find(name);
    if (found == at_.end()) throw Error(Exit::internal, "no column '" + name + "' was selected");
    return found->second;
  }

 private:
  const Statement& q_;
  std::map<std::string, int, std::less<>> at_;
};

/// Columns that a statement does without.
using LeftOut = std::span<const std::string_view>;

inline bool is_left_out(LeftOut columns, std::string_view column) {
  return std::ranges::find(columns, column) != columns.end();
}

/// Reads rows whose columns are the fields of a T: looks each name up once.
template <class T>
class RowReader {
 public:
  explicit RowReader(const Statement& q, LeftOut left_out = {}) : q_(q) {
    const Columns columns(q);
    for_each_field(kFields<T>, [&](const auto& f) {
      at_.push_back(is_left_out(left_out, f.column) ? kNowhere : columns.at(f.column));
    });
  }
  T read() const {
    T value;
    read(value);
    return value;
  }
  /// Into the fields of a value that is there; its parts, and what is left out, stay as they are.
  void read(T& value) const {
    size_t i = 0;
    for_each_field(kFields<T>, [&](const auto& f) {
      const int at = at_[i++];
      if (at != kNowhere) read_column(q_, at, f.of(value));
    });
  }

 private:
  static constexpr int kNowhere = -1;

  const Statement& q_;
  std::vector<int> at_;
};

/// "r.variant, r.status, …": the columns of a T, of the table called `table` in the statement.
template <class T>
std::string columns_of(const std::string& table, LeftOut left_out = {}) {
  std::string list;
  for_each_field(kFields<T>, [&](const auto& f) {
    if (is_left_out(left_out, f.column)) return;
    list += fmt::format("{}{}.{}", list.empty() ? "" : ", ", table, f.column);
  });
  return list;
}

/// The first column of all rows of a statement, with the arguments as ?1, ?2, …
template <class V, class... Args>
std::vector<V> values_of(Database& db, std::string_view sql, const Args&... args) {
  Statement q(db, sql);
  q.bind(args...);
  std::vector<V> values;
  while (q.step()) read_column(q, 0, values.emplace_back());
  return values;
}

/// All rows of such a statement, whose columns are the fields of a T.
template <class T, class... Args>
std::vector<T> all_rows(Database& db, std::string_view sql, const Args&... args) {
  Statement q(db, sql);
  q.bind(args...);
  const RowReader<T> row(q);
  std::vector<T> rows;
  while (q.step()) rows.push_back(row.read());
  return rows;
}

/// How a field is stored: enumerators by name, hashes as 16 hex digits, what is not finite as NULL.
template <class V>
auto stored(const V& value) {
  if constexpr (std::is_enum_v<V>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<V, uint64_t>) {
    return fmt::format("{:016x}", value);
  } else {
    return value;
  }
}

/// Inserts a row: `keys`, which are pairs of a column and its value, and every field of `value`.
template <class T, class... Keys>
void insert_row(Database& db, const std::string& table, const T& value,
                const std::pair<const char*, Keys>&... keys) {
  std::vector<std::string> columns = {keys.first...};
  for_each_field(kFields<T>, [&](const auto& f) { columns.emplace_back(f.column); });
  const std::vector<std::string> places(columns.size(), "?");
  Statement insert(db, fmt::format("INSERT INTO {} ({}) VALUES ({})", table,
                                   fmt::join(columns, ", "), fmt::join(places, ", ")));
  int i = 0;
  (insert.bind_at(++i, keys.second), ...);
  for_each_field(kFields<T>, [&](const auto& f) { insert.bind_at(++i, stored(f.of(value))); });
  insert.run();
}

/// The rows of a table that are parts of one thing, of one thing after another.
template <class T>
class PartReader {
 public:
  /// `parent`: the column with the number of what a row is part of.
  PartReader(Database& db, const std::string& table, const std::string& parent,
             const std::string& order)
      : q_(db, fmt::format("SELECT {} FROM {} t WHERE {} = ?1 ORDER BY {}", columns_of<T>("t"),
                           table, parent, order)),
        row_(q_) {}

  /// Replaces `rows`, whose memory it uses.
  void read(int64_t parent, std::vector<T>& rows) {
    size_t count = 0;
    q_.bind(parent);
    for (; q_.step(); ++count) {
      if (count == rows.size()) rows.emplace_back();
      row_.read(rows[count]);
    }
    q_.reset();
    rows.resize(count);
  }

 private:
  Statement q_;
  RowReader<T> row_;
};

}  // namespace moegate
