// SPDX-License-Identifier: Apache-2.0
// How suspects are measured again, side by side: screened, confirmed and measured once more, which
// side goes first in a round, and which rounds are repeated. Which rows of a night are suspects
// says worth_a_replay() (gate.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/evidence.h"
#include "harness/judge/verdict.h"

namespace moegate {

/// Whether the base goes first in this round, counted from 0: at random, but each side once in
/// rounds 2k and 2k + 1. A drift falls on both sides alike, and a load that comes and goes has no
/// order to keep step with.
bool base_leads(uint32_t seed, int round);

/// One row's levels by round, of each side.
struct RoundsOfRow {
  ByRound base, head;
  size_t lane = 0;  // of the devices that worked at the same time: a round has a process on each
};

/// A process in which nearly all rows were off together: that was the machine.
struct WildProcess {
  int round = 0;
  bool head = false;         // its side
  double off = 0;            // the median row, as a share: 0.5 is 50 % slower
  size_t rows = 0, all = 0;  // that were off, and that it measured

  /// "the head's process of round 3: 20 of 20 rows off, by +50.0 %"
  std::string text() const;
};

/// From this on a row is off; as a log.
double far_off(const Limits& limits);

/// The processes of rounds [first, last) in which at least nine tenths of the rows, and no fewer
/// than six, were off in one direction from the row's median over those rounds by `far` or more.
/// None for fewer than eight rounds: a screen of four would pass what is slow in one of them.
std::vector<WildProcess> wild_processes(std::span<const RoundsOfRow> rows, int first, int last,
                                        double far);

/// The wildest round that may be measured again. `again`: the processes whose rounds were measured
/// again already. Nothing where those and the wild ones are more than a third of `planned` rounds,
/// or where one was faster than the rest: a load that comes and goes is no accident, and to leave
/// out its peaks would pick its phases. Of a side at most one more than of the other: a side that
/// is wild alone is slow now and then rather than unlucky.
std::optional<WildProcess> next_to_repeat(std::span<const WildProcess> wild,
                                          std::span<const WildProcess> again, int planned);

/// Who measures.
struct RoundCalls {
  /// One process of each side. False: it was interrupted, and no round follows.
  std::function<bool(int round, bool base_first)> measure;
  /// Of the rounds that count.
  std::function<std::vector<RoundsOfRow>()> levels;
  /// From now on the round does not count.
  std::function<void(int round)> drop;
};

/// Measures so many rounds from `first` on, and wild ones again under numbers of their own, in the
/// order of the round that each replaces. Adds those to `repeated`. Returns the next free number.
int measure_rounds(const RoundCalls& calls, int first, int planned, uint32_t seed, double far,
                   std::vector<WildProcess>& repeated);

/// Rounds per step. A gate's suspects get `rounds` pairs of processes; what launches the same code
/// in the first of them leaves as identical, and what is inconclusive after all gets `extra_rounds`
/// new ones, once. An A/B begins with screen_rounds, a gate with its stored numbers. With
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
