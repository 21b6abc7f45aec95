// SPDX-License-Identifier: Apache-2.0
// A verdict for people (markdown), for machines (JSON), and as rows of the store.
#pragma once

#include <string>

#include "harness/gate.h"
#include "harness/store.h"
#include "harness/table.h"

namespace moegate {

/// Everything that is printed about a verdict.
struct GateReport {
  GateResult result;
  Exit exit = Exit::ok;
  RunInfo run;  // the one that was judged
  std::string db;
  Limits limits;
  std::string throttle;  // clock-throttle reasons seen, with counts; empty for none
  std::string next;      // a command to paste: how to bless this run
};

/// First line = verdict; then what is not pass, improvements, counts, provenance. Stays below the
/// size that forges accept as a comment.
std::string markdown(const GateReport& report);
/// verdict.json; its "schema" changes only when a field's meaning does.
std::string verdict_json(const GateReport& report);
/// Every case as one row, for --format csv.
Table verdict_table(const GateResult& result);

/// Replaces the verdict rows of a run against the same baselines in one transaction.
void store_verdicts(Store& store, int64_t run, const GateResult& result);

/// "sw_power_cap in 2 of 3 processes"; empty when no process was throttled.
std::string throttle_summary(Store& store, int64_t run);

}  // namespace moegate
