// SPDX-License-Identifier: Apache-2.0
// How AITER PR 3526 selects a token's experts, kept as it is, holes included: k passes over the raw
// logits, each taking the first one strictly greater than all before it among those not chosen yet.
//
// Documented divergences from topk_sort.h, both from starting a pass at (-infinity, expert 0):
//   - a row with fewer than k finite logits takes expert 0 in every pass that finds nothing, and
//     the later slot overwrites the earlier one: expert 0 can lose its real weight, and the row
//     has fewer than k experts;
//   - a NaN is never chosen, and makes every weight of its row NaN when all experts are summed.
#pragma once

#include <cmath>

#include "harness/kernel/dtype.h"

namespace moegate::topk_sort {

/// One token. `logit(e)` gives a raw logit. `slot_of[e]`, all 0 on entry, becomes 1 + the slot in
/// which expert e was chosen; `weight[slot]` its weight: exp(logit - row maximum), divided by the
/// sum over the chosen (`over_chosen`) or over all experts, times `scale`.
template <class Logit>
MOEGATE_HD inline void strict_greater_select(int experts, int topk, bool over_chosen, float scale,
                                             const Logit& logit, int32_t* slot_of, float* weight) {
  float top = -INFINITY;
  for (int e = 0; e < experts; ++e) {
    if (logit(e) > top) top = logit(e);
  }
  float denominator = 0;
  for (int slot = 0; slot < topk; ++slot) {
    float best = -INFINITY;
    int best_expert = 0;
    for (int e = 0; e < experts; ++e) {
      const float value = logit(e);
      if (slot_of[e] == 0 && value > best) {
        best = value;
        best_expert = e;
      }
    }
    slot_of[best_expert] = slot + 1;
    weight[slot] = expf(best - top);
    if (over_chosen) denominator += weight[slot];
  }
  if (!over_chosen) {
    for (int e = 0; e < experts; ++e) denominator += expf(logit(e) - top);
  }
  for (int slot = 0; slot < topk; ++slot) weight[slot] *= scale / denominator;
}

}  // namespace moegate::topk_sort
