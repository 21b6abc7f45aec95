// SPDX-License-Identifier: Apache-2.0
#include "harness/store/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace moegate {
namespace {

/// Runs of some age that have something to lose, and whether they keep it. {0}: days, {1}: how thin
/// they are to become.
constexpr const char* kOld = R"(
CREATE TEMP TABLE old AS
  SELECT run_id,
         EXISTS (SELECT 1 FROM verdict WHERE verdict.run_id = run.run_id AND
                 outcome IN ('regressed', 'wrong', 'missing', 'waived')) OR
         EXISTS (SELECT 1 FROM tag WHERE tag.run_id = run.run_id AND name = 'blessed') AS whole
  FROM run
  WHERE status <> 'running' AND started <= strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-{0} days') AND
        EXISTS (SELECT 1 FROM process WHERE process.run_id = run.run_id AND thinned < {1});
CREATE TEMP TABLE gone AS
  SELECT result_id FROM old CROSS JOIN process USING (run_id) CROSS JOIN result USING (process_id)
  WHERE NOT whole;
)";

void thin(Database& db, int days, int thinned, const std::vector<const char*>& tables,
          Pruned& pruned) {
  db.execute(fmt::format(kOld, days, thinned));
  pruned.runs += db.integer("SELECT count(*) FROM old WHERE NOT whole");
  pruned.whole = std::max(pruned.whole, db.integer("SELECT count(*) FROM old WHERE whole"));
  const int64_t before = db.bytes_of("freelist_count");
  for (const char* table : tables) {
    db.execute(
        fmt::format("DELETE FROM main.{} WHERE result_id IN (SELECT result_id FROM gone)", table));
  }
  const int64_t freed = db.bytes_of("freelist_count") - before;
  pruned.bytes += freed;
  db.execute(
      fmt::format("UPDATE process SET thinned = {0}, bytes = max(0, bytes - {1} * results / "
                  "(SELECT max(1, count(*)) FROM gone)) "
                  "WHERE run_id IN (SELECT run_id FROM old WHERE NOT whole) AND thinned < {0};"
                  "DROP TABLE gone; DROP TABLE old",
                  thinned, freed));
}

}  // namespace

Pruned prune(Store& store, const PruneAges& ages) {
  Database& db = store.database();
  Transaction transaction(db);
  Pruned pruned;
  if (ages.launches)
    thin(db, *ages.launches, 2, {"sample", "launch", "metric_value", "stall"}, pruned);
  thin(db, ages.samples, 1, {"sample"}, pruned);
  transaction.commit();
  return pruned;
}

void mark_blessed(Store& store, int64_t run) {
  store.database().run(
      "INSERT OR REPLACE INTO tag (run_id, name, value) VALUES (?1, ?2, date('now'))", run,
      kBlessedTag);
}

Sizes compact(Store& store) {
  Database& db = store.database();
  Sizes sizes{.before = db.bytes_of("page_count")};
  db.execute("VACUUM");
  sizes.after = db.bytes_of("page_count");
  return sizes;
}

}  // namespace moegate
