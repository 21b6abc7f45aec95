// SPDX-License-Identifier: Apache-2.0
// What a run, or a baseline, says about every row: the levels of its processes
// summarised to one Side. Which of their numbers is judged, the rows say (Judged).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/by_round.h"
#include "harness/judge/verdict.h"
#include "harness/values/run.h"

namespace moegate {

/// No baseline may hold a row whose processes spread by more.
constexpr double kWidestSpread = 0.2;

struct CaseId {
  std::string suite, key, variant;
};
struct CaseIdLess {
  bool operator()(const CaseId& a, const CaseId& b) const;
};

/// Which of a side's numbers is compared.
enum class Quantity {
  level,  // what `judged` says: the span, or the ratio to the yardstick
  time    // the span, also where ratios were measured
};

struct Side {
  Evidence level;    // microseconds, or ratios; n counts the processes that measured it
  double tick = 0;   // of the timer, as a share of the level, where it limits what can be seen
  double error = 0;  // largest rel_l2 over outputs and processes
  bool deterministic = true;
  Judged judged = Judged::none;  // what `level` is
  /// Host: too few processes had the machine to themselves, so the level says nothing about the
  /// kernel.
  bool disturbed = false;
  ByRound by_round;  // the levels behind `level`, for pairing with another side's
  ByRound times;     // of the same processes: microseconds of span
  /// Plain means where `by_round` and `times` leave out what few launches do; a process of an older
  /// program states none.
  ByRound means, mean_times;
  /// What the ratios are to, "per_token@c0de": the variant and the hash of its code. Empty: they
  /// are none, or to code that is unknown or not the same in every process.
  std::string yardstick;
  std::string code;  // hash of what was launched; empty: unknown, or not the same in every process
  std::vector<SeedError> seeds;  // of its first process that has any
  BeyondRounding rounding;       // of them, the mean; graded 0: not known
  bool asked_alike = true;       // all of its processes, by the operator (question.h)
  std::string out;    // hash over all seeds' outputs; empty: unknown or not deterministic
  double anchor = 0;  // the level that creep is counted from; 0: none
  double tail = 0;    // plain mean over level, geometric over processes; 0: unknown
  /// Microseconds that the host took to enqueue a launch, by round; empty for graphs and on a host. Of
  /// a baseline's row every process has that of the slowest.
  ByRound enqueues;
  /// Of a baseline's row whose level is a ratio: what its slowest process took, microseconds; 0: unknown.
  double slowest_us = 0;
  /// Of a baseline: the row left it, and what is known is its last level.
  bool retired = false;
  std::string timer;
  Status status = Status::ok;  // the worst of its processes
  std::string why;             // of that process
  int processes = 0;
  int affected = 0;  // processes with that status
  int noisy = 0;     // processes that measured it, or tried to, but not in quiet
  /// Processes with a span below the floor of the device's ceilings, or cold as if warm.
  int impossible = 0, warm = 0;

  /// No process had the machine to itself for one launch.
  bool never_quiet() const { return level.n == 0 && status == Status::noisy && noisy > 0; }
  bool measured() const { return level.n > 0 && (status == Status::ok || status == Status::noisy); }
  /// Whether its level says how a row develops from run to run.
  bool comparable() const { return measured() && !disturbed && judged != Judged::is_yardstick; }
  /// Whether later runs may be judged against it.
  bool fit() const { return measured() && !disturbed && level.sd_log <= kWidestSpread; }
  const ByRound& rounds(Quantity q) const { return q == Quantity::time ? times : by_round; }
  const ByRound& mean_rounds(Quantity q) const { return q == Quantity::time ? mean_times : means; }
};

/// What two sides are compared by. A yardstick has no ratio of its own, and ratios to different
/// yardsticks, or to other code of one, do not compare: such rows are judged by their own time. It
/// compares within one round only, because a host's absolute times do not compare between days.
Quantity compared(const Side& base, const Side& head);

using Sides = std::map<CaseId, Side, CaseIdLess>;

/// Of levels that come row by row, and those of a row in the order of their rounds. Throws
/// Error(internal) for a row that comes again.
Sides collect(const EachLevel& levels);
Sides collect(const std::vector<Level>& levels);

/// Of the processes of these rounds, a level each.
Evidence evidence_of(const ByRound& rounds);

/// The conditions a run was measured under, as a baseline of one of its suites states them.
BaselineHeader header_of(const RunInfo& run, const std::string& suite);

}  // namespace moegate
