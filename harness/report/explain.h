// SPDX-License-Identifier: Apache-2.0
// Why the rows of one stored run differ from those of another, from what is in the store: no device is asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/report/cause_page.h"
#include "harness/store/store.h"

namespace moegate {

struct ExplainQuery {
  int64_t base = 0, head = 0;                 // runs
  std::string case_pattern, variant_pattern;  // found anywhere; empty: everything
};

/// Error(coverage): two runs have no row in common that a question is about.
Error nothing_in_common(const RunInfo& base, const RunInfo& head, const ExplainQuery& query);

struct Explained {
  RunInfo base, head;
  std::vector<CausedRow> rows;  // of both runs; the slowest first
  size_t left_out = 0;          // that are of both, too, and unsupported or failed in one of them
  /// Commands that would count what a side lacks; empty where both were counted in every row that is not
  /// judged equal, and on a host, which is not counted.
  Commands to_count;
};

/// Two runs that each measured one variant of a case are compared in it, whatever it is called: those of
/// an A/B of two variants. Throws Error(usage) for a bad pattern and Error(coverage) where the runs have
/// no row in common that matches. Rows are judged as in row_effects.h.
Explained explain_runs(Store& store, const ExplainQuery& query);

/// A sentence per row, the numbers of the first ten, and the commands.
Page explain_page(const Explained& explained);

}  // namespace moegate
