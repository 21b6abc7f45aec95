// SPDX-License-Identifier: Apache-2.0
#include "harness/store/query_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/values/result.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestReport = size_t{1} << 20;  // bytes
constexpr int kLongestCell = 1 << 24;               // bytes
constexpr double kLongestSeconds = 60;
constexpr size_t kMostRows = 1000000;

Table::Cell cell(const Statement& q, int i) {
  if (q.is_null(i)) return {.text = "", .none = true};
  if (!q.is_number(i)) return {q.text(i), false};
  const double value = q.real(i);
  // Integers in full; other numbers with the digits a measurement has.
  if (value == static_cast<double>(q.integer(i))) return {std::to_string(q.integer(i)), true};
  return {fmt::format("{:.6g}", value), true};
}

/// Of a result's status, of several processes the worst, which stands first, and of one that a mark
/// follows ("ok impossible"). Other texts are plain.
Tone tone_of_status(const std::string& text) {
  const std::string status = text.substr(0, text.find_first_of(", "));
  for (const Status s : kWorstFirst) {
    if (is_failure(s) && status == name_of(s)) return Tone::bad;
  }
  return status == name_of(Status::noisy) ? Tone::doubtful : Tone::plain;
}

void bind(Statement& q, const ReportArgs& about) {
  q.bind_named(":run", about.run);
  if (about.op) q.bind_named(":op", *about.op);
  if (about.open) q.bind_named(":open", 1);
  if (about.against && !q.bind_named(":against", *about.against))
    usage_error("--against: this report is about one run; leave it out");
}

/// What follows "-- NAME: " in each line before the SELECT that begins so.
std::vector<std::string> head_lines(const fs::path& sql, const std::string& name) {
  const std::string mark = "-- " + name + ": ";
  std::vector<std::string> all;
  std::istringstream lines(read_file(sql, kLongestReport));
  for (std::string line; std::getline(lines, line) && line.starts_with("--");) {
    if (line.starts_with(mark)) all.push_back(line.substr(mark.size()));
  }
  return all;
}

/// The columns that lines "-- NAME: a; b" list.
std::vector<std::string> head_columns(const fs::path& sql, const std::string& name,
                                      const Table& table) {
  std::vector<std::string> all;
  for (const std::string& line : head_lines(sql, name)) {
    std::istringstream names(line);
    for (std::string column; std::getline(names, column, ';');) all.push_back(trimmed(column));
  }
  for (const std::string& column : all) {
    if (std::ranges::count(table.columns, column) == 1) continue;
    usage_error("{}: its line '-- {}:' names '{}', which is no column{}", sql.string(), name,
                column, did_you_mean(column, table.columns));
  }
  return all;
}

/// The one read-only SELECT of a file, with the functions and views of add_sql_functions(). Throws
/// Error(usage) naming the file for what is none.
Statement prepare_report(Store& store, const fs::path& sql) {
  const std::string text = read_file(sql, kLongestReport);
  add_sql_functions(store.database());
  sqlite3_limit(store.database().handle(), SQLITE_LIMIT_LENGTH, kLongestCell);
  try {
    Statement q(store.database(), text);
    if (q.readonly() && q.columns() > 0) return q;
  } catch (const SqlError& e) {
    if (!e.is_about_sql()) throw;
    usage_error("{}: {}", sql.string(), e.what());
  }
  usage_error("{}: a report is one SELECT; it may not change or attach anything", sql.string());
}

/// The names of its columns. Throws Error(usage) naming the file where two are the same.
std::vector<std::string> columns_of_report(const Statement& q, const fs::path& sql) {
  std::vector<std::string> columns;
  for (int i = 0; i < q.columns(); ++i) {
    columns.push_back(q.column_name(i));
    if (std::ranges::count(columns, columns.back()) == 1) continue;
    usage_error("{}: has two columns '{}'; give one another name with AS", sql.string(),
                columns.back());
  }
  return columns;
}

/// Adds the row at which a statement stands, without the first columns where the table has fewer.
/// NULL is an empty cell.
void add_row_of_report(const Statement& q, Table& table) {
  const int columns = static_cast<int>(table.columns.size());
  const int skipped = q.columns() - columns;
  const auto status = std::ranges::find(table.columns, "status") - table.columns.begin();
  std::vector<Table::Cell>& row = table.rows.emplace_back();
  row.reserve(table.columns.size());
  for (int i = 0; i < columns; ++i) {
    row.push_back(cell(q, skipped + i));
    if (i == status) row.back().tone = tone_of_status(row.back().text);
  }
}

Table rows_of(Statement& q, const fs::path& sql, const ReportArgs& about) {
  bind(q, about);
  Table table{columns_of_report(q, sql), {}};
  table.keep = head_columns(sql, "keep", table);
  for (const auto& column : head_columns(sql, "people", table))
    table.only[column] = Readers::people;
  for (const auto& column : head_columns(sql, "programs", table))
    table.only[column] = Readers::programs;
  while (q.step()) {
    if (table.rows.size() == kMostRows) {
      usage_error("{}: has more than {} rows; narrow it, or query the store with sqlite3",
                  sql.string(), kMostRows);
    }
    add_row_of_report(q, table);
  }
  return table;
}

constexpr const char* kAskedTables = R"sql(
CREATE TEMP TABLE IF NOT EXISTS asked (
  place INTEGER PRIMARY KEY, run_id INTEGER, case_id INTEGER, key TEXT, variant TEXT);
CREATE TEMP TABLE IF NOT EXISTS asked_result (
  place INTEGER, result_id INTEGER, round INTEGER, PRIMARY KEY (place, result_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS temp.asked_row ON asked (case_id, variant);
DELETE FROM asked;
DELETE FROM asked_result;
)sql";

}  // namespace

std::vector<std::string> report_names() {
  std::set<std::string> names;
  std::error_code ignored;  // an unreadable folder has no reports
  for (const auto& entry : fs::directory_iterator(home() / "reports", ignored)) {
    if (entry.path().extension() == ".sql") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

fs::path find_report(const std::string& name) {
  std::error_code ignored;
  const bool is_path = name.find('/') != std::string::npos || fs::path(name).extension() == ".sql";
  if (is_path) {
    if (fs::is_regular_file(name, ignored)) return name;
    usage_error("report {}: no such file", name);
  }
  const fs::path folder = home() / "reports";
  const fs::path path = folder / (name + ".sql");
  if (!name.empty() && fs::is_regular_file(path, ignored)) return path;
  std::vector<std::string> known = report_names();
  for (const char* without_sql : {"changes", "history", "why"}) known.emplace_back(without_sql);
  usage_error("no report '{}'{} in {}; there are: {}; or give the path of a .sql file", name,
              did_you_mean(name, known), folder.string(), fmt::join(known, ", "));
}

Table run_report(Store& store, const fs::path& sql, const ReportArgs& about) {
  const TimeLimit limit(store.database(), kLongestSeconds);
  try {
    Statement q = prepare_report(store, sql);
    return rows_of(q, sql, about);
  } catch (const Error& e) {
    const auto* failed = dynamic_cast<const SqlError*>(&e);
    if (e.code() == Exit::usage || (failed && !failed->is_about_sql())) throw;
    if (limit.over()) {
      usage_error("{}: takes longer than {:g} s; narrow it, or query the store with sqlite3",
                  sql.string(), kLongestSeconds);
    }
    usage_error("{}: {}", sql.string(), e.what());
  }
}

std::string title_of_report(const fs::path& sql) {
  const auto lines = head_lines(sql, "title");
  return lines.empty() ? "" : lines.front();
}

std::string task_of_report(const fs::path& sql) {
  const auto lines = head_lines(sql, "task");
  return lines.empty() ? "measure" : lines.front();
}

void ask_about(Store& store, const std::vector<AskedRow>& rows) {
  Database& db = store.database();
  const TempWrites writes(db);
  db.execute(kAskedTables);
  Transaction transaction(db, "BEGIN");
  Statement add(
      db, "INSERT INTO asked SELECT ?1, ?2, case_id, key, ?4 FROM bench_case WHERE case_id = ?3");
  int64_t place = 0;
  for (const AskedRow& row : rows) add.bind(place++, row.run, row.case_id, row.variant).run();
  // In this order: the results of a process are found by case and variant.
  db.execute(
      "INSERT INTO asked_result SELECT place, result_id, round FROM asked a CROSS JOIN process "
      "USING (run_id) CROSS JOIN result r ON r.process_id = process.process_id AND r.case_id = "
      "a.case_id AND r.variant = a.variant ORDER BY place, result_id");
  transaction.commit();
}

std::vector<int64_t> first_results(Store& store, size_t rows) {
  std::vector<int64_t> first(rows, 0);
  Statement q(store.database(), "SELECT place, min(result_id) FROM asked_result GROUP BY place");
  while (q.step()) first.at(static_cast<size_t>(q.integer(0))) = q.integer(1);
  return first;
}

RowReport::RowReport(Store& store, const std::filesystem::path& sql)
    : sql_(sql), q_(prepare_report(store, sql)) {
  empty_.columns = columns_of_report(q_, sql);
  if (empty_.columns[0] != "place")
    usage_error("{}: a report about rows has `place` as its first column", sql.string());
  empty_.columns.erase(empty_.columns.begin());
}

bool RowReport::step() {
  const std::optional<int64_t> before = at_;
  at_ = q_.step() ? std::optional(q_.integer(0)) : std::nullopt;
  if (at_ && before && *at_ < *before)
    usage_error("{}: a report about rows ends with ORDER BY place, ...", sql_.string());
  return at_.has_value();
}

Table RowReport::of(int64_t place) {
  if (!begun_ || place <= asked_) {
    q_.reset();
    at_.reset();
    step();
    begun_ = true;
  }
  asked_ = place;
  while (at_ && *at_ < place) step();
  Table table = empty_;
  for (; at_ && *at_ == place; step()) add_row_of_report(q_, table);
  return table;
}

}  // namespace moegate
