// SPDX-License-Identifier: Apache-2.0
#include "harness/store/prune.h"

#include <fmt/format.h>

namespace moegate {
namespace {

/// The results of old runs, and whether a gate failed a row of their run.
constexpr const char* kOldSamples = R"(
CREATE TEMP TABLE old AS
  SELECT run_id, EXISTS (SELECT 1 FROM verdict WHERE verdict.run_id = run.run_id AND
                         outcome IN ('regressed', 'wrong', 'missing', 'waived')) AS failed
  FROM run
  WHERE status <> 'running' AND started <= strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-{} days') AND
        EXISTS (SELECT 1 FROM process JOIN result USING (process_id) JOIN sample USING (result_id)
                WHERE process.run_id = run.run_id);
CREATE TEMP TABLE gone AS
  SELECT result_id FROM old JOIN process USING (run_id) JOIN result USING (process_id)
  WHERE NOT failed;
)";

int64_t size_of(Database& db) {
  return db.integer("PRAGMA page_count") * db.integer("PRAGMA page_size");
}

}  // namespace

Pruned prune_samples(Store& store, int days) {
  Database& db = store.database();
  Transaction transaction(db);
  db.execute(fmt::format(kOldSamples, days));
  Pruned pruned;
  pruned.runs = db.integer("SELECT count(*) FROM old WHERE NOT failed");
  pruned.failed = db.integer("SELECT count(*) FROM old WHERE failed");
  pruned.bytes =
      db.integer("SELECT coalesce(sum(length(spans)), 0) FROM sample JOIN gone USING (result_id)");
  db.execute(
      "DELETE FROM sample WHERE result_id IN (SELECT result_id FROM gone);"
      "DROP TABLE gone; DROP TABLE old;");
  transaction.commit();
  return pruned;
}

Sizes compact(Store& store) {
  Database& db = store.database();
  Sizes sizes{.before = size_of(db)};
  db.execute("VACUUM");
  sizes.after = size_of(db);
  return sizes;
}

}  // namespace moegate
