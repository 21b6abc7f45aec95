// SPDX-License-Identifier: Apache-2.0
// An A/B as values: two programs, or two variants of one, measured side by side, and what was
// decided about every row. ab.h only measures. replay_rule.h decides what to measure next and
// gives the verdict. ab_report.h words it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/gate.h"
#include "harness/judge/replay_rule.h"

namespace moegate {

/// Two variants of one build that were compared: the base run's first, the head run's second. Their
/// case is called "first → second".
using VariantPair = std::pair<std::string, std::string>;

struct Comparison {
  int64_t base_run = 0, head_run = 0;
  std::optional<VariantPair> pair;  // absent: two programs, each row against its own
  bool trust_code = true;           // the same machine code was not judged for latency
  Sides base, head;                 // of all rounds
  Replayed decided;
  std::set<CaseId, CaseIdLess> suspects;  // of the screen
  std::vector<std::string> changed;       // for GateResult::changed
  std::vector<CaseId> lacking;            // rows of the base's suites that the head's lack
  int least_rounds = 0;                   // of every row
  uint32_t order_seed = 0;                // of the sides in each round
  bool interrupted = false;
};

/// The log ratios of one row over the rounds [first, last) that both sides measured, of what the
/// two are compared by.
PairedQuestion pair_rounds(const Side& base, const Side& head, int first, int last);

}  // namespace moegate
