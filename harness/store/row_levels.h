// SPDX-License-Identifier: Apache-2.0
// What complete runs say of their rows, in one line each. Whoever asks about many nights reads these
// lines and not the results, of which a year has 10^8.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace moegate {

struct RowLevel {
  int64_t case_id = 0;  // read, in its store
  std::string key;      // written: a year's are read without the keys that they repeat
  std::string variant;
  Status status = Status::ok;  // the worst of its processes
  Judged judged = Judged::none;
  int processes = 0;                // that measured it
  double mean_log = 0, sd_log = 0;  // of the level, which is microseconds or a ratio
  bool comparable = false;          // whether there is a level that compares with another run's
  std::string code;                 // hash of what was launched; empty: unknown
};

/// Replaces those of a run. Cases that the store does not know are left out. Throws Error(store).
void write_row_levels(Store& store, int64_t run, const std::vector<RowLevel>& rows);

/// Calls `add` with those of a run, ordered by case and variant. False: it has none, as a run that was
/// interrupted, merged, or measured on several GPUs; its results are what there is. Throws Error(store).
bool read_row_levels(Store& store, int64_t run, const std::function<void(const RowLevel&)>& add);

}  // namespace moegate
