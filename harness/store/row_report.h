// SPDX-License-Identifier: Apache-2.0
// Reports about many rows (case and variant) at once: each is read one time, row after row. Asking a
// report about ten thousand rows, one by one, costs minutes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/store/store.h"

namespace moegate {

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
