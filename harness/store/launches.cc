// SPDX-License-Identifier: Apache-2.0
#include "harness/store/launches.h"

#include "harness/store/rows.h"

namespace moegate {

std::vector<StoredLaunch> launches_of(Store& store, int64_t run) {
  Statement rows(store.database(),
                 "SELECT DISTINCT k.name, block, dynamic_shared "
                 "FROM kernel k JOIN result USING (result_id) JOIN process USING (process_id) "
                 "WHERE run_id = ?1 AND block <> '' ORDER BY k.name, block, dynamic_shared");
  rows.bind(run);
  const Columns column(rows);
  std::vector<StoredLaunch> launches;
  while (rows.step()) {
    launches.push_back(
        {column.text("name"), column.text("block"), column.integer("dynamic_shared")});
  }
  return launches;
}

}  // namespace moegate
