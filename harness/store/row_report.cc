// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_report.h"

#include "harness/store/report_rows.h"

namespace moegate {
namespace {

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

void ask_about(Store& store, const std::vector<AskedRow>& rows) {
  Database& db = store.database();
  const TempWrites writes(db);
  db.execute(kAskedTables);
  Transaction transaction(db, "BEGIN");
  Statement add(db,
                "INSERT INTO asked SELECT ?1, ?2, case_id, key, ?4 FROM bench_case "
                "WHERE case_id = ?3");
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
