// SPDX-License-Identifier: Apache-2.0
// Why rows differ, as sections of a page: a sentence per row, and below them all numbers.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/gate.h"
#include "harness/report/page.h"

namespace moegate {

/// A row and why it differs.
struct CausedRow {
  std::string key, variant;
  double effect = 0;  // share; above 0: the head is slower
  Cause cause;
};

/// The rows of a verdict that were asked about: the slowest first, the fastest last.
std::vector<CausedRow> caused_rows(const GateResult& result);

/// A list with a sentence for each row, where there are rows.
void add_causes(Page& page, int rank, const std::vector<CausedRow>& rows);
/// A row's name, what else was found, and the numbers of both sides.
std::vector<Block> numbers_of_row(const CausedRow& row);
/// A folded table of the numbers of both sides for each row that has some, what else was found above it.
void add_cause_numbers(Page& page, int rank, const std::vector<CausedRow>& rows);
/// A line for each number of each row, the sentence repeated; a row without numbers has one line.
Table cause_table(const std::vector<CausedRow>& rows);

}  // namespace moegate
