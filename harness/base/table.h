// SPDX-License-Identifier: Apache-2.0
// A table of text cells has five spellings: text for a terminal, aligned markdown, CSV (RFC 4180),
// TSV and JSON. Parts of it can be taken, in another order.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/base/terminal.h"

namespace moegate {

/// What a cell says of its row, by its colour where there are colours.
enum class Tone { plain, good, bad, doubtful };

/// Whom a column is for: "1.21x" for people, 1.2137 for programs.
enum class Readers { people, programs };

struct Table {
  /// A text as it is; each spelling escapes it.
  struct Cell {
    std::string text;
    bool number = false;  // right-aligned in markdown, unquoted in JSON
    bool bold = false;    // in markdown
    std::string mark;     // a sign that follows the text: after its bold in markdown, "x ⚠"
    Tone tone = Tone::plain;
    bool none = false;  // of a query without a value here: null in JSON
  };
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows = {};
  /// By columns' names: the page of a site (site/site.h) that their cells lead to, such as
  /// "night={run}". {NAME} is the text of the row's cell under NAME; one that is empty
  /// leads nowhere.
  std::map<std::string, std::string> links = {};
  /// Columns, by name, that only some readers get.
  std::map<std::string, Readers> only = {};
  /// Names of the columns that a text which is too wide keeps. Columns before the first of them
  /// stand above their rows, any other column goes. Empty: see render_text().
  std::vector<std::string> keep = {};

  /// A row of texts, numbers and cells.
  template <class... Values>
  static std::vector<Cell> row(const Values&... values) {
    return {cell(values)...};
  }
  template <class... Values>
  void add(const Values&... values) {
    rows.push_back(row(values...));
  }
  /// A number as it is printed: number("{:.2f}", 1.5).
  template <class... Args>
  static Cell number(fmt::format_string<Args...> format, Args&&... args) {
    return {fmt::format(format, std::forward<Args>(args)...), true};
  }
  template <class T>
  static Cell cell(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return number("{}", value);
    } else if constexpr (std::same_as<T, Cell>) {
      return value;
    } else {
      return {std::string(value)};
    }
  }
};

enum class Format { text, md, csv, tsv, json };
/// "text", "md", "csv", "tsv", "json"; throws Error(usage) naming the choices.
Format parse_format(const std::string& name);
/// text and md; the others are for programs.
bool is_for_people(Format format);

/// What is drawn as text fits standard output. md shows every cell as it is (escape.h); tsv writes
/// tab, line end and backslash in a cell as \t, \n, \r and \\; json is an array of objects.
std::string render(const Table& table, Format format);

/// A column by its name; upper and lower case differ only where two columns do.
std::optional<size_t> find_column(const Table& table, const std::string& name);
/// The same; throws Error(usage) naming the flag, the name that is closest and all there are.
size_t column_of(const Table& table, const std::string& flag, const std::string& name);

/// Without the columns that are for other readers alone.
Table for_readers(const Table& table, Readers readers);

/// These columns, in this order.
Table with_columns(const Table& table, const std::vector<size_t>& columns);
/// The columns that are wanted, in their order.
Table columns_where(const Table& table, const std::function<bool(size_t)>& wanted);

/// Without the columns that have no text in any row. Of a table without rows: as it is.
Table without_empty_columns(const Table& table);

/// By the number that a cell is or starts with ("1.25x"), else as text with numbers in it; what is
/// equal stays in its order. Cells without a number come after those with one and empty ones last,
/// `descending` or not.
void sort_rows(Table& table, size_t column, bool descending);

/// At most `most` rows, in the table's order: those that `matters` says are kept before the others.
Table most_important(const Table& table, size_t most,
                     const std::function<bool(const std::vector<Table::Cell>&)>& matters);

/// The table in columns, a line per row. No line is longer than the screen is wide; a table that
/// is wider is made to fit, by as few of these as do, in this order:
/// - a table of one row: its cells below each other
/// - columns that say the same in all rows are said once above it
/// - times lose their seconds
/// - parts that all keys of a column share become "…", and are said once above it
/// - headings fold at their spaces
/// - keys that are still long stand above their rows, and the columns before those that it keeps
/// - a last column of text folds, or stands below its row
/// - columns that it does not keep go from the right, else those of numbers, but three; a line
///   names them
/// - texts are cut in their middle, then more numbers go, then texts
/// Pure: all that it knows of a terminal is `screen`.
std::string render_text(const Table& table, const Screen& screen);

// Keys of parts, "topk_sort/tokens=8,topk=2", without the parts that all of them share.

struct FoldedKeys {
  std::vector<std::string> keys;  // "…tokens=8…": each run of shared parts is one ellipsis
  std::string shared;  // "topk_sort/tokens=…,topk=2": the first key without what differs
};

/// Nothing to fold (`shared` is empty) where fewer than two keys are given, one of them has no part
/// NAME=VALUE, or they share no part.
FoldedKeys fold_keys(const std::vector<std::string>& keys);

}  // namespace moegate
