// SPDX-License-Identifier: Apache-2.0
// Inside the store: what is common to reports, however they are read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/store/store.h"

namespace moegate {

/// The one read-only SELECT of a file, with the functions and views of add_sql_functions(). Throws
/// Error(usage) naming the file for what is none.
Statement prepare_report(Store& store, const std::filesystem::path& sql);

/// The names of its columns. Throws Error(usage) naming the file where two are the same.
std::vector<std::string> columns_of_report(const Statement& q, const std::filesystem::path& sql);

/// Adds the row at which a statement stands, without the first columns where the table has fewer.
/// NULL is an empty cell.
void add_row_of_report(const Statement& q, Table& table);

}  // namespace moegate
