// SPDX-License-Identifier: Apache-2.0
// One stored run judged against another by their stored numbers: what compare asks, and explain. Pure.
#pragma once

#include "harness/judge/gate.h"

namespace moegate {

/// What the rows of an A/B are said to be held against: "run 3 'main' at abc123".
std::string against_commit(const RunInfo& base);

/// The same machine code is judged, too: the numbers are what is asked about.
GateResult judge_runs(const RunInfo& base, const RunInfo& head, Sides base_sides,
                      const Sides& head_sides, const Limits& limits);

}  // namespace moegate
