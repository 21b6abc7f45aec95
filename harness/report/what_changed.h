// SPDX-License-Identifier: Apache-2.0
// What changed between two runs of a store, by cause: rows of one variant that changed in the same
// run are one group. A group says between which commits it changed, and how its level went. Report
// only: nothing here fails a gate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/judge/gate.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

/// perhaps_...: a row of a host that only a replay could judge, because its yardstick is other code
/// too; its own time and its ratio to the yardstick moved the same way.
enum class ChangeKind { wrong, slower, perhaps_slower, lost, faster, perhaps_faster, added };
const char* name_of(ChangeKind kind);  // "wrong", "slower", "perhaps slower", ..., "new"

struct ChangedRow {
  CaseId id;
  double change = 0;  // head over base - 1; 0 where there is no level on both sides
  std::string why;    // the verdict's sentence
};

/// Rows of an operator's variant that changed in one way in one run; the worst first.
struct ChangeGroup {
  ChangeKind kind = ChangeKind::slower;
  std::string op, variant;
  std::vector<ChangedRow> rows;
  double change = 0;  // their geometric mean
  RunInfo before,
      after;  // the two runs that the step lies between; of one that has no level base and head
  std::string code;                // "changed", "same", "" where it is unknown
  std::vector<double> trend = {};  // mean logarithm of the rows' levels, run by run; NaN: none
};

struct WhatChanged {
  RunInfo base, head;
  size_t rows = 0;                  // that were compared
  size_t inconclusive = 0;          // of them
  size_t runs = 0;                  // from base to head that compare
  std::vector<ChangeGroup> groups;  // in the order of ChangeKind; then by size
};

/// The whole runs that compare with `head` (device, timer, flush, protocol, suites, selection) and
/// began at `since` or later, with the last one before them; by start, up to `head`.
std::vector<int64_t> comparable_runs(Store& store, int64_t head, const std::string& since);

/// The last run that others compare with, because someone's own of a few rows may be later; where
/// there is none, the last run. Throws Error(usage) for a store without runs.
int64_t last_comparable_run(Store& store);

/// What changed from `base` to `head`. Throws Error(usage) where the two do not compare.
WhatChanged what_changed(Store& store, int64_t base, int64_t head, const Limits& limits);

/// "3 slower, 1 new of 494 rows, 12 inconclusive, from run 4 (...) to run 9 (...)"
Line what_changed_line(const WhatChanged& changed);
Table groups_table(const WhatChanged& changed);

/// `address`: of the repository on the web, for links to its commits; empty: none.
Page what_changed_page(const WhatChanged& changed, const std::string& address);
/// A row for each row that changed; for csv and json.
Table what_changed_table(const WhatChanged& changed);

/// "https://github.com/o/r" of "git@github.com:o/r.git"; empty for what is no web address.
std::string web_address(const std::string& remote);

}  // namespace moegate
