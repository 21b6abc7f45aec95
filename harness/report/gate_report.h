// SPDX-License-Identifier: Apache-2.0
// A verdict for people (markdown), for machines (JSON), and as rows of the store.
#pragma once

#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/judge/gate.h"
#include "harness/store/store.h"

namespace moegate {

/// Everything that is printed about a verdict.
struct GateReport {
  GateResult result;
  Exit exit = Exit::ok;
  RunInfo run;  // the one that was judged
  std::string db;
  Limits limits;
  std::string throttle;  // clock-throttle reasons seen, with counts; empty for none
  std::string tables;    // of an A/B, for the pull request; empty otherwise
  std::string next;      // a command to paste: how to bless this run
};

/// Outcomes that fail a gate, and the order in which they are shown.
inline const std::vector<Outcome> kFailures = {Outcome::regressed, Outcome::wrong, Outcome::missing,
                                               Outcome::environment};

/// The cases with one of these outcomes in their order, regressions by their lower bound: by how
/// bad they are at least. They point into `result`.
std::vector<const CaseVerdict*> worst_first(const GateResult& result,
                                            const std::vector<Outcome>& outcomes);

/// What forges accept as a comment is 65,536 characters.
constexpr size_t kCommentBytes = 60000;

/// First line = verdict; then waivers, what is not pass, improvements, counts, provenance. Whole
/// tables are left out from the bottom, saying so, until it has less than `max_bytes`.
std::string markdown(const GateReport& report, size_t max_bytes = kCommentBytes);
/// verdict.json; its "schema" changes only when a field's meaning does.
std::string verdict_json(const GateReport& report);
/// Every case as one row, for --format csv.
Table verdict_table(const GateResult& result);

/// Replaces the verdict rows of a run against the same baselines in one transaction.
void store_verdicts(Store& store, int64_t run, const GateResult& result);

/// "sw_power_cap in 2 of 3 processes"; empty when no process was throttled.
std::string throttle_summary(Store& store, int64_t run);

}  // namespace moegate
