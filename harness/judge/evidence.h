// SPDX-License-Identifier: Apache-2.0
// This file says what a run, or a baseline, says about every row: the levels of its processes are
// summarised to one Side. Which of their numbers is judged, the rows say (Judged).
#pragma once

#include <boost/container/flat_map.hpp>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/values/run.h"

namespace moegate {

/// A number for each of some rounds, in one piece of memory: a run has 10^5 of these, of five
/// rounds each.
using ByRound = boost::container::flat_map<int, double>;

/// Finds keys in a map. Where they are asked for in the map's order, or nearly, each is a step or
/// two from the one before; else it is found as the map finds it. The map may not change meanwhile.
template <class Map>
class InOrder {
 public:
  using Iterator = typename Map::const_iterator;

  explicit InOrder(const Map& map) : map_(&map), at_(map.begin()) {}

  Iterator find(const typename Map::key_type& key) {
    constexpr int kSteps = 4;
    const auto less = map_->key_comp();
    bool stepped = false;  // so that all before at_ is less
    for (int i = 0; i < kSteps && at_ != map_->end() && less(at_->first, key); ++i) {
      ++at_;
      stepped = true;
    }
    const bool passed = at_ == map_->end() || !less(at_->first, key);
    const bool none_before = stepped || at_ == map_->begin() || less(std::prev(at_)->first, key);
    if (!passed || !none_before) at_ = map_->lower_bound(key);
    return at_ == map_->end() || less(key, at_->first) ? map_->end() : at_;
  }
  const typename Map::mapped_type* find_or_null(const typename Map::key_type& key) {
    const Iterator found = find(key);
    return found == map_->end() ? nullptr : &found->second;
  }

 private:
  const Map* map_;
  Iterator at_;
};

template <class Map>
const typename Map::mapped_type* find_or_null(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// No baseline may hold a row whose processes spread by more.
constexpr double kWidestSpread = 0.2;

struct CaseId {
  std::string suite, key, variant;
};
struct CaseIdLess {
  bool operator()(const CaseId& a, const CaseId& b) const;
};

/// Of a case, by its key.
std::string operator_of(const std::string& key);

/// Which of a side's numbers is compared.
enum class Quantity {
  level,  // what `judged` says: the span, or the ratio to the yardstick
  time    // the span, also where ratios were measured
};

/// Whether a token's bits depend on its batch.
enum class Invariance { unknown, kept, broken };

/// What the levels of a run and the rows of a baseline say alike.
struct RowFacts {
  double error = 0;         // largest rel_l2 over outputs and processes
  BeyondRounding rounding;  // mean over the seeds; graded 0: not known
  bool deterministic = true;
  Invariance invariance = Invariance::unknown;  // worst of its processes that were asked
  std::string code;  // hash of what was launched; empty: unknown, or not the same in every process
  std::string out;   // hash over all seeds' outputs; empty: unknown or not deterministic
  /// What the ratios are to, "per_token@c0de": the variant and the hash of its code. Empty: they
  /// are none, or to code that is unknown or not the same in every process.
  std::string yardstick;
  double anchor = 0;  // the level that creep is counted from: the best, or one accepted; 0: none
  double tail = 0;    // plain mean over level, geometric over processes; 0: unknown
};

struct Side : RowFacts {
  Evidence level;   // microseconds, or ratios; n counts the processes that measured it
  double tick = 0;  // of the timer, as a share of the level, where it limits what can be seen
  Judged judged = Judged::none;  // what `level` is
  /// Host: too few processes had the machine to themselves, so the level says nothing about the
  /// kernel.
  bool disturbed = false;
  ByRound by_round;  // the levels behind `level`, for pairing with another side's
  ByRound times;     // of the same processes: microseconds of span
  /// Plain means where `by_round` and `times` leave out what few launches do; a process of an older
  /// program states none.
  ByRound means, mean_times;
  std::vector<SeedError> seeds;  // of its first process that has any
  bool asked_alike = true;       // all of its processes, by the operator (look.h)
  /// Microseconds that the host took to enqueue a launch, by round; empty for graphs and on a host.
  /// Of a baseline's row every process has that of the slowest.
  ByRound enqueues;
  /// Of a baseline's row whose level is a ratio: what its slowest process took, microseconds;
  /// 0: unknown.
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

std::vector<double> numbers_of(const ByRound& rounds);
/// Of the processes of these rounds, a level each.
Evidence evidence_of(const ByRound& rounds);

/// The conditions a run was measured under, as a baseline of one of its suites states them.
BaselineHeader header_of(const RunInfo& run, const std::string& suite);

}  // namespace moegate
