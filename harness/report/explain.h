// SPDX-License-Identifier: Apache-2.0
// This file says why rows differ: a sentence per row with all numbers folded below, of a verdict or
// of two stored runs, and how far apart these are in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/judge/gate.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

// Why rows differ, as sections of a page: a sentence per row, and below them all numbers.

struct CausedRow {
  std::string key, variant;
  double effect = 0;  // share; above 0: the head is slower
  Cause cause;
};

/// The rows of a verdict that were asked about: the slowest first, the fastest last.
std::vector<CausedRow> caused_rows(const GateResult& result);

/// A list with a sentence for each row, where there are rows.
void add_causes(Page& page, int rank, const std::vector<CausedRow>& rows);
/// What else was found of each row, and both sides' numbers, folded; nothing where it has none.
void add_cause_numbers(Page& page, int rank, const std::vector<CausedRow>& rows);
/// A line for each number of each row, the sentence repeated; a row without numbers has one line.
Table cause_table(const std::vector<CausedRow>& rows);

// How the rows of one stored run differ from another's in time, and which of them do not: what was
// judged of the two, or would be.

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
  /// Commands that would count what a side lacks; empty where both were counted in every row that
  /// is not judged equal, and on a host, which is not counted.
  Commands to_count;
};

/// Two runs that each measured one variant of a case are compared in it, whatever it is called:
/// those of an A/B of two variants. Throws Error(usage) for a bad pattern and Error(coverage) where
/// the runs have no row in common that matches. Rows are judged as the store has them from a
/// verdict of these two runs (ab's, whose rounds are paired, before compare's); else as compare
/// would judge them, where equal is what no replay would look at again: no row depends on which
/// others are asked about. Where latency is not judged, the effect is that of the levels, or 0.
Explained explain_runs(Store& store, const ExplainQuery& query);

/// A sentence per row, the numbers of the first ten, and the commands.
Page explain_page(const Explained& explained);

// Where warps wait in two stored runs of Task::stalls, base beside head.

/// Whether both runs hold what stall_page() shows.
bool are_of_stalls(const RunInfo& base, const RunInfo& head);

/// A first sentence, and a section of rank 1 for every row that both runs hold and a question is
/// about: how much was sampled, and a table of the `most` instructions that changed most
/// (align_stalls()), shares in percent of the launch's samples. The processes of a run are added
/// up. Throws Error(usage) for a bad pattern and Error(coverage) where there is none in common.
Page stall_page(Store& store, const ExplainQuery& query, size_t most = 10);

}  // namespace moegate
