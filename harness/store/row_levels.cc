// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_levels.h"

#include "harness/store/rows.h"

namespace moegate {

void write_row_levels(Store& store, int64_t run, const std::vector<RowLevel>& rows) {
  Database& db = store.database();
  Transaction transaction(db);
  Statement(db, "DELETE FROM row_level WHERE run_id = ?1").bind(run).run();
  Statement insert(db,
                   "INSERT INTO row_level (run_id, case_id, variant, status, judged, processes, "
                   "mean_log, sd_log, comparable, code) SELECT ?1, case_id, ?3, ?4, ?5, ?6, ?7, "
                   "?8, ?9, ?10 FROM bench_case WHERE key = ?2");
  for (const RowLevel& row : rows) {
    insert
        .bind(run, row.key, row.variant, name_of(row.status), name_of(row.judged), row.processes,
              row.mean_log, row.sd_log, row.comparable, row.code)
        .run();
  }
  transaction.commit();
}

bool read_row_levels(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add) {
  Statement q(store.database(),
              "SELECT case_id, variant, status, judged, processes, mean_log, sd_log, "
              "comparable, code FROM row_level WHERE run_id = ?1 ORDER BY case_id, variant");
  q.bind(run);
  RowLevel row;
  bool any = false;
  while (q.step()) {
    int column = 0;
    const auto next = [&](auto& value) { read_column(q, column++, value); };
    next(row.case_id), next(row.variant), next(row.status), next(row.judged);
    next(row.processes), next(row.mean_log), next(row.sd_log), next(row.comparable);
    next(row.code);
    add(row);
    any = true;
  }
  return any;
}

}  // namespace moegate
