// SPDX-License-Identifier: Apache-2.0
// The rule of a replayed comparison, in which every round runs both sides: screen, confirm with
// new rounds, extend once. Pure functions; the caller measures, asks, measures more, asks again.
//
// Why the error rate holds:
// - The rounds used to select are not used to test, so selection does not bias the p-values. Holm's
//   correction over the selected rows is enough (screen and clean: Wasserman & Roeder 2009).
// - The extension is planned before anything is seen and judges its new rounds alone. Each of the
//   two looks gets half of alpha. Their sum bounds the chance of any false alarm.
// - There is no third look.
// - Tails (tails.h) are two families more, each with an alpha of its own.
#pragma once

#include <span>
#include <vector>

#include "harness/judge/verdict.h"

namespace moegate {

/// Rounds per step. A screen on stored numbers (judge_family) does not use screen_rounds. With
/// extra_rounds == 0 there is no extension, and the confirmation gets all of alpha.
struct ReplayPlan {
  int screen_rounds = 4;
  int rounds = 12;
  int extra_rounds = 24;
};

/// Judges the screening rounds, tails included. No verdict but for what is no suspect.
std::vector<Judgement> screen(std::span<const PairedQuestion> family, const Limits& limits);

/// Indices of the suspects of a screen. It keeps back a row that is shown equal and
/// unsuspicious in both directions (p >= .05 each), and one that was not judged by its time (wrong,
/// missing, new, identical, …). There is no correction, because a screen is no verdict.
std::vector<size_t> suspects(std::span<const Judgement> screened);

struct Confirmed {
  std::vector<Judgement> judgements;  // as the family
  std::vector<size_t> undecided;      // indices of those to extend
};

/// Judges the screened family on plan.rounds new rounds. If the plan has no extension, no row is
/// left undecided: an inconclusive one stays inconclusive.
Confirmed confirm(std::span<const PairedQuestion> family, const Limits& limits,
                  const ReplayPlan& plan);

/// The last word: the undecided judged on plan.extra_rounds new rounds alone, `again`, in the order
/// of first.undecided. Throws std::invalid_argument when their counts differ.
std::vector<Judgement> extend(Confirmed first, std::span<const PairedQuestion> again,
                              const Limits& limits);

}  // namespace moegate
