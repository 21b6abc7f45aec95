// SPDX-License-Identifier: Apache-2.0
// Elements of an output by row and column, for sentences. Only for accuracy.cc.
#pragma once

#include <fmt/format.h>

#include <string>

#include "harness/values/accuracy.h"

namespace moegate {

/// Says of elements where they are.
class Where {
 public:
  Where(const Place& place, int64_t width) : place_(place), width_(width) {}

  std::string row(int64_t i) const {
    const int64_t row = in(place_.rows, i);
    const std::string name = place_.name ? place_.name(row) : "";
    return fmt::format("row {}{}", row, name.empty() ? "" : " (" + name + ")");
  }
  std::string column(int64_t i) const { return fmt::format("column {}", in(place_.columns, i)); }
  std::string element(int64_t index) const {
    return row(index / width_) + ", " + column(index % width_);
  }

 private:
  static int64_t in(const std::vector<int64_t>& all, int64_t i) {
    return all.empty() ? i : all.at(static_cast<size_t>(i));
  }
  const Place& place_;
  int64_t width_;
};

/// The rows and columns that elements outside of a tolerance are in.
struct Outside {
  int64_t row = -1, column = -1;  // of the first
  bool one_row = true, one_column = true;

  void add(int64_t r, int64_t c) {
    if (row < 0) row = r, column = c;
    one_row = one_row && r == row;
    one_column = one_column && c == column;
  }
  /// Of several elements that have one in common.
  std::string text(const Where& where, int64_t rows, int64_t columns) const {
    if (one_row == one_column) return "";
    return one_row ? fmt::format(", all in {} of {}", where.row(row), rows)
                   : fmt::format(", all in {} of {}", where.column(column), columns);
  }
};

}  // namespace moegate
