// SPDX-License-Identifier: Apache-2.0
// The rule of a replayed comparison, in which every round runs both sides: screen, confirm with
// new rounds, extend once. Pure functions; the caller measures, asks, measures more, asks again.
//
// Why the error rate holds: what is confirmed was selected by other rounds, so the selection leaves
// the p-values alone and Holm over the selected is enough (screen and clean: Wasserman & Roeder
// 2009). The extension is planned before anything is seen and judges its new rounds alone; each of
// the two looks gets half of alpha, and the sum of both bounds the chance of any false alarm. There
// is no third look.
#pragma once

#include <span>
#include <vector>

#include "harness/judge/verdict.h"

namespace moegate {

/// Rounds per step. Where the screen is on stored numbers (judge_family), screen_rounds is unused;
/// with extra_rounds == 0 there is no extension and the confirmation has all of alpha.
struct ReplayPlan {
  int screen_rounds = 4;
  int rounds = 12;
  int extra_rounds = 24;
};

/// Indices of the cases that go on after the screen: all but those shown equal and unsuspicious in
/// both directions, p >= .05 each. No correction: a screen is no verdict. Cases that were not
/// judged by their time (wrong, missing, new, identical, …) stay.
std::vector<size_t> suspects(std::span<const Judgement> screened);

struct Confirmed {
  std::vector<Judgement> judgements;  // as the family
  std::vector<size_t> undecided;      // indices of those to extend
};

/// Judges the screened family on plan.rounds new rounds. Without an extension in the plan nothing
/// is left undecided: what is inconclusive stays so.
Confirmed confirm(std::span<const PairedQuestion> family, const Limits& limits,
                  const ReplayPlan& plan);

/// The last word: the undecided judged on plan.extra_rounds new rounds alone, `again`, in the order
/// of first.undecided. Throws std::invalid_argument when their counts differ.
std::vector<Judgement> extend(Confirmed first, std::span<const PairedQuestion> again,
                              const Limits& limits);

}  // namespace moegate
