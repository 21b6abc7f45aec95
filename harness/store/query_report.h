// SPDX-License-Identifier: Apache-2.0
// A report is a file with one SELECT: its rows are the table. Adding one needs no rebuild.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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
  bool open = false;                              // of verdicts only those that did not pass
  std::optional<int64_t> against = std::nullopt;  // the run before
};

/// Runs the report's one read-only SELECT. NULL becomes an empty
/// cell. Lines before it, "-- keep: a; b", say what a narrow text keeps, and "-- people: a",
/// "-- programs: b" which columns only those get (Table::keep, Table::only).
/// Beside SQLite's own functions and the tables it may use what add_sql_functions() adds.
/// Throws Error(usage) naming the file for anything else, for columns of the same name, more than a
/// million rows, a cell of more than 16 MiB and more than 60 seconds; Error(store) for what is the
/// store's fault.
Table run_report(Store& store, const std::filesystem::path& sql, const ReportArgs& about);

/// What its head says it shows ("-- title: ..."); empty where it does not.
/// Throws Error(usage).
std::string title_of_report(const std::filesystem::path& sql);

/// The task of the runs that it is about ("-- task: counters" on a line of its own, before the
/// SELECT); "measure" where it names none. Throws Error(usage).
std::string task_of_report(const std::filesystem::path& sql);

/// Adds the functions and views that reports share, listed in reports/README.md, to a connection.
/// Not to the store: it may be open for reading only. Those that it has already stay.
void add_sql_functions(Database& db);
/// Of these views those that any client of SQLite can have: a script that makes them.
std::string plain_views();

// Reports about many rows (case and variant) at once: each is read one time, row after row. Asking
// a report about ten thousand rows, one by one, costs minutes.

/// A row, and the run in which it is asked about.
struct AskedRow {
  int64_t run = 0, case_id = 0;
  std::string variant;
};

/// Puts the rows into two TEMP tables of the connection, where reports find them by their place in
/// `rows`; what an earlier call put there goes:
///   asked (place, run_id, case_id, key, variant)
///   asked_result (place, result_id, round): their results in that run
void ask_about(Store& store, const std::vector<AskedRow>& rows);

/// Of each asked row the number of its first result; 0: it has none.
std::vector<int64_t> first_results(Store& store, size_t rows);

/// A report of which each asked row gets its own lines: a SELECT whose first column is `place` and
/// rises. Its other columns are those of the table.
class RowReport {
 public:
  /// Prepares it; ask_about() comes first. Throws Error(usage) naming the file for what is no such
  /// SELECT.
  RowReport(Store& store, const std::filesystem::path& sql);
  /// What it says of the row at `place`, without rows where that is nothing. Places that rise are
  /// read in one pass; a place that was passed begins another. Throws Error(usage) naming the file
  /// where places fall. It has no limit of time or rows, as run_report() sets: it is read in parts.
  Table of(int64_t place);

 private:
  bool step();

  std::filesystem::path sql_;
  Statement q_;
  Table empty_;                // with the columns
  int64_t asked_ = -1;         // the newest place
  std::optional<int64_t> at_;  // place of the line that is to be read next
  bool begun_ = false;
};

}  // namespace moegate
