// SPDX-License-Identifier: Apache-2.0
// Whether variants that choose a configuration choose the best one: what is asked and measured, and
// what becomes of it. The rule is judge/regret.h's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/choice_ask.h"
#include "harness/campaign/recording.h"
#include "harness/judge/gate.h"
#include "harness/judge/regret.h"

namespace moegate {

struct CheckOptions {
  RunOptions run;
  int64_t resume = 0;  // the run to finish; 0: a new one
  double limit = 0.05;
  /// Has waivers of a device class let known regrets pass; empty: there are none.
  std::function<void(GateResult& rows, const std::string& klass)> waive = {};
};

const char* name_of(RegretFinding finding);

/// A layer at a token count, or an operator alone: all that one choice of parameters decides.
struct CheckedCell {
  CaseId id;           // of its first operator
  std::string series;  // what it shares with other token counts
  int tokens = 0;
  std::string path, stale;  // as the choice says them
  RegretFinding finding = RegretFinding::best;
  Regret regret;       // of findings that were timed
  std::string why;     // a sentence
  std::string waiver;  // of its regret and cliff; empty: none
  /// Of what is the best on the mean over routings instead; only where there are several.
  std::optional<Regret> of_mean = {};
  std::string mean;  // its name

  bool is_waived() const { return finding == RegretFinding::regret && !waiver.empty(); }
};

struct CheckedCliff {
  size_t cell;  // with fewer tokens
  CaseId id;    // its
  int fewer = 0, more = 0;
  Cliff cliff;
  std::string why;
};

struct ChoiceReport {
  Tally tally;
  std::vector<CheckedCell> cells;    // none after an interruption
  std::vector<CheckedCliff> cliffs;  // those over the limit
  std::vector<std::string> means;  // what is the best on the mean, a line for each layer and count
  std::vector<std::string> notes;
  std::vector<std::string> waiver_problems;  // any is Exit::waiver
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
/// against "regret", "cliff" and "mean" into the store, and no other file.
ChoiceReport check_choices(PreparedCheck prepared, const CheckOptions& options);

Exit check_exit(const ChoiceReport& report);

// What has been measured of a cell decides what is measured again, and what is compared.

using Microseconds = std::map<RowName, std::vector<double>>;  // by round

/// The rows that could be the best if times were wrong by 10 %; those that ship are among them, and
/// where nothing else comes near, what comes next.
std::set<RowName> finalists(const std::vector<ChoicePart>& parts, const Microseconds& screened);
/// By cell, a row for each operator: of cells that differ in their routing alone, what has the
/// least mean time by one round. Nothing where no group has times in all of them.
using Picked = std::vector<std::vector<const ChoiceOption*>>;
Picked best_of_mean(const std::vector<const Cell*>& cells, const Microseconds& screened);
/// Of a cell: sums over its operators, group by group, of rows with as many rounds as the choice.
ChoiceTimes choice_times(const std::vector<ChoicePart>& parts, const Microseconds& times);

}  // namespace moegate
