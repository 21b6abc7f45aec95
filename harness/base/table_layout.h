// SPDX-License-Identifier: Apache-2.0
// What of a table is shown where, so that it fits a width; table_text.h draws it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/base/table.h"

namespace moegate {

constexpr size_t kColumnGap = 2;  // blanks between columns

struct TableLayout {
  /// A column that is no column any more, with a text for each row.
  struct Aside {
    std::string name;
    std::vector<std::string> texts;
  };
  Table table;   // its cells one line each, their marks among their text
  size_t width;  // that the table may have
  size_t indent = 0;
  bool headings_fold = false;
  size_t last_width = 0;               // to which the last column folds; 0: it does not
  Aside group;                         // stands above rows, once where they have the same
  Aside below;                         // stands below each row
  std::vector<std::string> above;      // what is said above the table
  std::vector<std::string> not_shown;  // columns
};

/// Each cell as one line, its mark behind its text.
Table one_lined(Table table);
/// As it is where that fits, else made to fit: table_text.h says how.
TableLayout layout_of(const Table& table, size_t width);

size_t column_width(const TableLayout& layout, size_t column);
bool fits(const TableLayout& layout);
/// Whether a column is aligned at its right.
bool has_numbers(const Table& table, size_t column);

}  // namespace moegate
