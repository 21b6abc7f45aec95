// SPDX-License-Identifier: Apache-2.0
// Whether variants that choose a configuration choose the best one: what is asked and measured, and
// what becomes of it. The rule is judge/regret.h's.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/choice_ask.h"
#include "harness/campaign/recording.h"
#include "harness/judge/regret.h"

namespace moegate {

struct CheckOptions {
  RunOptions run;
  int64_t resume = 0;  // the run to finish; 0: a new one
  double limit = 0.05;
};

const char* name_of(RegretFinding finding);

/// A layer at a token count, or an operator alone: all that one choice of parameters decides.
struct CheckedCell {
  CaseId id;           // of its first operator
  std::string series;  // what it shares with other token counts
  int tokens = 0;
  std::string path, stale;  // as the choice says them
  RegretFinding finding = RegretFinding::best;
  Regret regret;    // of findings that were timed
  std::string why;  // a sentence
};

struct CheckedCliff {
  CaseId id;  // of the cell with fewer tokens
  int fewer = 0, more = 0;
  Cliff cliff;
  std::string why;
};

struct ChoiceReport {
  Tally tally;
  std::vector<CheckedCell> cells;    // none after an interruption
  std::vector<CheckedCliff> cliffs;  // those over the limit
  std::vector<std::string> notes;
};

/// A check before its first row.
struct PreparedCheck {
  Prepared run;
  Questions asked;
};

/// Plans what the variants of --module choose, else what variant `tuned` does, at the suite's token
/// counts and on both sides of each count where the choice changes. While `registry` is loaded: the
/// choosers are asked here, thousands of times. Throws Error(usage) where nothing chooses.
PreparedCheck prepare_check(const CheckOptions& options, const Registry& registry,
                            WorkerSource& source);
/// Measures it beside all that could be chosen. The first process measures everything; what is
/// within 10 % of the best meets the choice again in --rounds fresh processes. Writes verdicts
/// against "regret" and "cliff" into the store, and no other file.
ChoiceReport check_choices(PreparedCheck prepared, const CheckOptions& options);

Exit check_exit(const ChoiceReport& report);

// What has been measured of a cell decides what is measured again, and what is compared.

using Microseconds = std::map<RowName, std::vector<double>>;  // by round

/// The rows that could be the best if times were wrong by 10 %; those that ship are among them, and
/// where nothing else comes near, what comes next.
std::set<RowName> finalists(const std::vector<ChoicePart>& parts, const Microseconds& screened);
/// Of a cell: sums over its operators, group by group, of rows with as many rounds as the choice.
ChoiceTimes choice_times(const std::vector<ChoicePart>& parts, const Microseconds& times);

}  // namespace moegate
