// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/store/rows.h"

namespace moegate {

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
