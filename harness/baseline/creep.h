// SPDX-License-Identifier: Apache-2.0
// Creep: many small losses, each too small to fail, that add up. Every baseline row remembers its
// anchor, the best level that was blessed for it; being slower than that is limited too. Pure.
#pragma once

#include <map>
#include <string>

#include "harness/baseline/baseline.h"
#include "harness/judge/gate.h"

namespace moegate {

/// How much slower than their anchors rows may become, as shares. A host's margins are ten times a
/// GPU's, and so, about, are its limits of creep.
struct CreepLimits {
  double row;      // one row
  double geomean;  // the geometric mean over a suite's rows

  static CreepLimits cuda() { return {0.03, 0.01}; }
  static CreepLimits host() { return {0.20, 0.10}; }
  /// The backend's; the row's is never below what fails it against the baseline (--fail-at).
  static CreepLimits of(Backend backend, const Limits& limits);
};

/// The least share by which a level is above its anchor: (1 + low) * base / anchor - 1, where `low`
/// is the lower bound of its change against the baseline.
double creep(double low, double base, double anchor);

/// Fails the rows that are above their anchor by more than the limit, though they pass against a
/// baseline that left the anchor. Cases that were not judged for latency have no bound and stay.
void apply_creep(GateResult& result, const std::map<std::string, Expectation>& expected,
                 const CreepLimits& limits);

/// The first row, or the suite, that is above its anchors by more than the limit, in words; empty
/// for none. It compares the levels themselves, without bounds, because a blessing stores them so.
std::string beyond_anchor(const Baseline& baseline, const CreepLimits& limits);

/// Gives the rows of a new epoch, whose conditions differ, their anchors of before, and retired
/// rows theirs. The scale is that of the rows that launch the same machine code on both sides,
/// whose change is the conditions' alone: each row's own, else the median of theirs. Returns false,
/// and changes nothing, where fewer than ten rows say so.
bool carry_anchors(const Baseline& before, Baseline& now);

/// Makes every row's level its anchor, which accepts what was lost until now.
void reset_anchors(Baseline& baseline);

}  // namespace moegate
