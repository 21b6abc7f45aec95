// SPDX-License-Identifier: Apache-2.0
// For tests: rows that were found to come to something.
#pragma once

#include "harness/judge/gate.h"

namespace moegate {

/// The weakest rule of this outcome is found.
inline void come_to(CaseVerdict& v, Outcome outcome) {
  for (size_t i = kRuleCount; i-- > 0;) {
    Found found;
    found.set(i);
    if (outcome_of(found) == outcome) return find(v, static_cast<Rule>(i), v.why);
  }
}

}  // namespace moegate
