// SPDX-License-Identifier: Apache-2.0
// A report is a file with one SELECT: its rows are the table. Adding one needs no rebuild.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/base/table.h"
#include "harness/store/store.h"

namespace moegate {

/// The names of reports/*.sql, sorted; none where there is no such folder.
std::vector<std::string> report_names();

/// A name of reports/*.sql, or a path. Throws Error(usage) listing what there is.
std::filesystem::path find_report(const std::string& name);

/// What a report is about. Where its SELECT has :run, :op or :open they are bound;
/// what is not given is NULL, with which a report means all.
struct ReportArgs {
  int64_t run = 0;
  std::optional<std::string> op = std::nullopt;
  bool open = false;  // of verdicts only those that did not pass
};

/// Runs the report's one read-only SELECT. NULL becomes an empty
/// cell. Beside SQLite's own functions and the tables it may use what add_sql_functions() adds.
/// Throws Error(usage) naming the file for anything else, for columns of the same name, more than a
/// million rows, a cell of more than 16 MiB and more than 60 seconds; Error(store) for what is the
/// store's fault.
Table run_report(Store& store, const std::filesystem::path& sql, const ReportArgs& about);

/// What its first line says it shows ("-- title: ..."); empty where it does not. Throws Error(usage).
std::string title_of_report(const std::filesystem::path& sql);

/// The task of the runs that it is about ("-- task: counters" on a line of its own, before the SELECT);
/// "measure" where it names none. Throws Error(usage).
std::string task_of_report(const std::filesystem::path& sql);

/// Adds the functions and views that reports share, listed in reports/README.md, to a connection.
/// Not to the store: it may be open for reading only. Those that it has already stay.
void add_sql_functions(Database& db);

}  // namespace moegate
