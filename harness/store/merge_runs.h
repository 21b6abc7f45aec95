// SPDX-License-Identifier: Apache-2.0
// What belongs to a run, copied into another store once the run has a number there.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/store/merge_rows.h"
#include "harness/store/merge_sources.h"
#include "harness/store/result_checksum.h"

namespace moegate {

/// Copies runs of one source, each within a transaction of it that its caller began.
class RunRows {
 public:
  RunRows(Source& in, Database& out, const TableShapes& shapes);
  /// Devices with their ceilings, and tables of which no run has a part. A device that stands for several becomes any of
  /// them: it is made anew of those.
  void copy_first();
  const NumberOfByColumn& numbers() const { return numbers_; }
  void copy(int64_t from, int64_t to);

 private:
  using Range = std::pair<int64_t, int64_t>;

  void keep_once(const TableShapes& shapes);
  void keep_parts(const TableShapes& shapes);
  void take_devices();
  void take_ceilings();
  void take_newer_case(int64_t from, int64_t to);
  /// Whether any of its processes was there.
  bool take_processes(int64_t run);
  std::vector<Range> results_of_run();
  void take_results(const std::vector<Range>& ranges, bool any_known);

  Source& in_;
  Database& out_;
  NumberOfByColumn numbers_;
  NumberOf device_;
  Numbers devices_, runs_, processes_, results_;  // the last three: of the run that is copied
  std::list<KeptRows> kept_;                      // numbers_ refers to them
  std::vector<RowCopy> of_store_, of_run_, of_result_, of_new_result_;
  std::vector<RowCopy> process_, result_;  // one each
  std::optional<RowCheck> check_;          // of rows of result_
  int64_t last_result_ = 0;                // of the other store
};

}  // namespace moegate
