// SPDX-License-Identifier: Apache-2.0
// This file compares two stored runs: one judged against the other by their stored numbers, and the
// two sides of an A/B as values. It is pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/gate.h"
#include "harness/judge/replay_rule.h"

namespace moegate {

/// What the rows of an A/B are said to be held against: "run 3 'main' at abc123".
std::string against_commit(const RunInfo& base);
/// Whether a row was held against a run, so described, and not against a file of baselines.
bool is_of_a_run(const std::string& against);

/// The same machine code is judged, too: the numbers are what is asked about. If the head is
/// not complete, the verdict is that of an interruption, and rows that a side lacks are left out.
GateResult judge_runs(const RunInfo& base, const RunInfo& head, Sides base_sides,
                      const Sides& head_sides, const Limits& limits);

/// Two variants of one build that were compared: the base run's first, the head run's second. Their
/// case is called "first → second".
using VariantPair = std::pair<std::string, std::string>;

struct Comparison {
  int64_t base_run = 0, head_run = 0;
  std::optional<VariantPair> pair;  // absent: two programs, each row against its own
  bool trust_code = true;           // the same machine code was not judged for latency
  bool only_environments = false;   // the sides were told nothing else apart
  Sides base, head;                 // of all rounds
  Replayed decided;
  std::set<CaseId, CaseIdLess> suspects;  // of the screen
  std::vector<std::string> changed;       // for GateResult::changed
  std::vector<CaseId> lacking;            // rows of the base's suites that the head's lack
  int least_rounds = 0;                   // of every row
  uint32_t order_seed = 0;                // of the sides in each round
};

/// The log ratios of one row over the rounds [first, last) that both sides measured, of what the
/// two are compared by.
PairedQuestion pair_rounds(const Side& base, const Side& head, int first, int last);

}  // namespace moegate
