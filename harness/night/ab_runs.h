// SPDX-License-Identifier: Apache-2.0
// Both runs of an A/B, which take turns round by round, and what they say so far. Decides nothing
// but which rounds are measured again (replay_rule.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/judge/comparison.h"
#include "harness/judge/replay_rule.h"
#include "harness/night/ab.h"

namespace moegate {

class AbRuns {
 public:
  /// `options` have to outlive it. `far`: from there on a row is off (far_off()).
  AbRuns(Store& store, Prepared base, Prepared head, const AbOptions& options, double far)
      : options_(options),
        far_(far),
        store_(store),
        base_(store, std::move(base)),
        head_(store, std::move(head)) {}

  bool is_pair() const { return !options_.base.variant.empty(); }
  /// Rows of either side, as they are shown; of a pair of variants where there are both: operators
  /// of a suite may share one of the names. Throws Error(coverage) where no case has both.
  std::set<RowName> rows() const;
  /// With its suite.
  CaseId id_of(const RowName& row) const;

  void begin() {
    base_.begin(0);
    head_.begin(0);
  }
  /// Measures these rounds and replaces wild ones; returns the number of the next. An interrupted
  /// round counts: some rows have it.
  int measure(int first, int rounds, const std::set<RowName>& rows);
  /// Those that a side which plans them has not measured in each of the rounds [first, last) that
  /// count.
  std::set<RowName> lacking(const std::set<RowName>& rows, int first, int last) const;
  /// Of so many rows, how many there is time for in so many rounds of both sides.
  size_t affordable(size_t rows, int rounds) const {
    return options_.run.deadline.affords(rows, rounds * seconds_per_row());
  }
  double seconds_per_row() const;  // of both sides' processes; 0: unknown
  /// Of checkouts: what their processes loaded that is not theirs; else empty.
  std::string foreign_file_loaded() const {
    if (!options_.checkouts) return "";
    return moegate::foreign_file_loaded(*options_.checkouts, base_.loaded(), head_.loaded());
  }
  void finish(bool interrupted) {
    base_.finish(interrupted);
    head_.finish(interrupted);
  }

  /// What the sides say, without the rounds that were measured again.
  const Sides& base() const { return base_sides_; }
  const Sides& head() const { return head_sides_; }
  /// Moves them into the result, with their runs' numbers and notes.
  void hand_over(Comparison& result);

 private:
  std::string shown(const std::string& variant) const {
    return is_pair() ? options_.base.variant + " → " + options_.head.variant : variant;
  }
  void one_round(Recording& side, int round, const std::set<RowName>& rows, Progress& progress);
  std::vector<RoundsOfRow> rounds_of(const std::set<RowName>& rows) const;
  Sides sides_of(const Recording& side) const;
  void refresh();

  const AbOptions& options_;
  const double far_;
  Store& store_;
  Recording base_, head_;
  Sides base_sides_, head_sides_;
  std::set<int> dropped_;  // rounds that were measured again
  std::vector<WildProcess> repeated_;
};

}  // namespace moegate
