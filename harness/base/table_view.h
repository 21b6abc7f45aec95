// SPDX-License-Identifier: Apache-2.0
// A part of a table: some of its columns or rows.
#pragma once

#include <cstddef>
#include <functional>

#include "harness/base/table.h"

namespace moegate {

/// Without the columns that have no text in any row. Of a table without rows: as it is.
Table without_empty_columns(const Table& table);

/// At most `most` rows, in the table's order: those that `matters` says are kept before the others.
Table most_important(const Table& table, size_t most,
                     const std::function<bool(const std::vector<Table::Cell>&)>& matters);

}  // namespace moegate
