// SPDX-License-Identifier: Apache-2.0
// An A/B as the tables that people paste into pull requests: one per model, operator,
// variant and configuration, a row per number of tokens, with what is needed to believe them. Never
// a bare speed-up: what is not distinguished from no change prints `~`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/comparison.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

/// What the tables say of a case beside its levels.
struct PrCase {
  std::string model;    // section of the suite
  std::string op;       // operator
  std::string config;   // the other parameters that are not at their default: "experts=256 topk=8"
  int64_t tokens = -1;  // -1: the operator has no such parameter
  Cost cost;            // of one launch
};

/// What the tables are made of. Both sides have the same ids, as `result` has.
struct PrTables {
  RunInfo base, head;  // measured in paired rounds on one device
  Sides base_sides, head_sides;
  std::map<std::string, PrCase> cases;     // by key
  std::map<std::string, double> ceilings;  // of the device; empty: none measured
  GateResult result;                       // of judging head against base
  Limits limits = Limits::cuda();
};

/// Everything but `result` and `limits`. Throws Error(usage) when the runs were measured on
/// different devices, or do not hold the variants of the pair.
PrTables read_pr_tables(Store& store, int64_t base, int64_t head,
                        const std::optional<VariantPair>& pair = {});

/// A section of rank 1 for each table, and a footer of rank 0 that says how it was measured.
/// Speed-up = before / after = 1 / (1 + effect), from the judgement; its two-sided 95 % interval
/// from the judgement's bounds and degrees of freedom. The geomean is over every row of a table
/// that was compared, identical ones as 1, with an interval from the geomeans of the rounds that
/// all of them have (Student t). A host's
/// yardstick, and what is to one of other code, has the speed-up of its own time.
std::vector<Section> pr_sections(const PrTables& tables);

}  // namespace moegate
