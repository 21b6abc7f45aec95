// SPDX-License-Identifier: Apache-2.0
// What an A/B measured and decided, as the one report that gate, compare and ab print.
#pragma once

#include <functional>
#include <string>

#include "harness/judge/comparison.h"
#include "harness/report/gate_report.h"

namespace moegate {

/// Judges what the two runs stored, accuracy and coverage included; the exit code is left to the
/// caller, who knows what may fail.
GateReport report_of(Store& store, const std::string& db, const Comparison& comparison,
                     const std::function<Limits(Backend)>& limits);

}  // namespace moegate
