// SPDX-License-Identifier: Apache-2.0
// A report is a file with one SELECT: its rows are the table. Adding one needs no rebuild.
#pragma once

#include <filesystem>
#include <string>

#include "harness/base/table.h"
#include "harness/store/store.h"

namespace moegate {

/// A name of reports/*.sql, or a path. Throws Error(usage) listing what there is.
std::filesystem::path find_report(const std::string& name);

/// Runs the report's one read-only SELECT with :run bound where it occurs. NULL becomes an empty
/// cell. Beside SQLite's own functions it may use sd(x), the sample standard deviation, and
/// t975(df), the factor of a two-sided 95 % interval. Throws Error(usage) naming the file for
/// anything else.
Table run_report(Store& store, const std::filesystem::path& sql, int64_t run);

/// Adds sd and t975 to a connection.
void add_sql_functions(Database& db);

}  // namespace moegate
