// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/left_out.h"

namespace moegate {
namespace {

/// What its outputs say stays: only its latency is open.
bool stays(const CaseVerdict& v) {
  return v.outcome == Outcome::wrong || v.outcome == Outcome::environment;
}

}  // namespace

void leave_open(GateResult& result, const std::set<CaseId, CaseIdLess>& left_out) {
  for (const CaseId& id : left_out) result.left_out.push_back(id.key + " " + id.variant);
  for (CaseVerdict& v : result.cases) {
    if (left_out.count(v.id) == 0) continue;
    const bool measured = v.latency.has_value();
    if (v.latency) v.latency->outcome = Outcome::inconclusive;
    if (stays(v)) continue;
    v.outcome = Outcome::inconclusive;
    v.why = measured ? "left out: the time was up before it was replayed; " + v.why
                     : "left out: the time was up before it was measured";
  }
}

}  // namespace moegate
