// SPDX-License-Identifier: Apache-2.0
// A part of a table: some of its columns or rows, in another order.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/table.h"

namespace moegate {

/// A column by its name; upper and lower case differ only where two columns do.
std::optional<size_t> find_column(const Table& table, const std::string& name);
/// The same; throws Error(usage) naming the flag, the name that is closest and all there are.
size_t column_of(const Table& table, const std::string& flag, const std::string& name);

/// These columns, in this order.
Table with_columns(const Table& table, const std::vector<size_t>& columns);

/// Without the columns that have no text in any row. Of a table without rows: as it is.
Table without_empty_columns(const Table& table);

/// By the number that a cell is or starts with ("1.25x"), else as text with numbers in it; what is
/// equal stays in its order. Cells without a number come after those with one and empty ones last,
/// `descending` or not.
void sort_rows(Table& table, size_t column, bool descending);

/// At most `most` rows, in the table's order: those that `matters` says are kept before the others.
Table most_important(const Table& table, size_t most,
                     const std::function<bool(const std::vector<Table::Cell>&)>& matters);

}  // namespace moegate
