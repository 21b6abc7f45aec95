// SPDX-License-Identifier: Apache-2.0
// Creep: many small losses, each too small to fail, that add up. Every baseline row remembers its
// anchor, the best level that was blessed for it; being slower than that is limited too. Pure.
#pragma once

#include <map>
#include <string>

#include "harness/judge/baseline.h"
#include "harness/judge/gate.h"

namespace moegate {

/// How much slower than their anchors rows may become, as shares. A host's ratios are judged with
/// ten times a GPU's margins, and creep with about as much more.
struct CreepLimits {
  double row;      // one row
  double geomean;  // the geometric mean over a suite's rows

  static CreepLimits cuda() { return {0.03, 0.01}; }
  static CreepLimits host() { return {0.20, 0.10}; }
  /// The backend's; a row may lose at least what fails it against the baseline (--fail-at).
  static CreepLimits of(Backend backend, const Limits& limits);
};

/// By which share a level is above its anchor at least: (1 + low) * base / anchor - 1, with the
/// lower bound of its change against the baseline.
double creep(double low, double base, double anchor);

/// Fails the cases that are above their anchor by more than the limit, though they pass against a
/// baseline that left the anchor. Only what was judged for latency has a bound to do it with.
void apply_creep(GateResult& result, const std::map<std::string, Expectation>& expected,
                 const CreepLimits& limits);

/// The first row, or the suite, that is above its anchors by more than the limit, in words; empty
/// for none. Levels as they are, without bounds: a blessing takes them as they are.
std::string beyond_anchor(const Baseline& baseline, const CreepLimits& limits);

/// Every row's level becomes its anchor: what was lost until now is accepted.
void reset_anchors(Baseline& baseline);

}  // namespace moegate
