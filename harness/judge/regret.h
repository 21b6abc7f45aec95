// SPDX-License-Identifier: Apache-2.0
// Whether a choice among configurations is the best one, and what it costs if not. Pure functions
// over the times of some rounds. The least of many noisy times is too small by luck, so no round
// both names the best and measures it: the even rounds name what the odd ones measure, and the odd
// ones what the even ones measure.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace moegate {

/// What verdicts of choices are against.
constexpr const char* kAgainstBest = "regret";

/// Fewest rounds: two of each half.
constexpr int kFewestRegretRounds = 4;

/// One way of running a cell, and its time in each round, in microseconds.
struct Alternative {
  std::string name;
  std::vector<double> us;
};

/// What was chosen, and what else could have been: all with the same rounds.
struct ChoiceTimes {
  Alternative shipped;
  std::vector<Alternative> others;
};

/// What was found of a choice. judge_regrets() finds the first four; the others have no times.
enum class RegretFinding {
  best,         // not shown slower, or by less than 1 %
  within,       // slower, and not shown slower by more than the limit
  regret,       // slower by more than the limit
  blind,        // there is nothing else, or there was no quiet launch
  wrong,        // its output is wrong
  fails,        // it crashes or takes too long
  unsupported,  // it cannot run the case
};

/// Shares: 0.08 is 8 %.
struct Regret {
  RegretFinding finding = RegretFinding::blind;
  double share = 0, low = 0, high = 0;  // shipped / best - 1, with its 95 % interval
  double p = 1, p_adjusted = 1;         // for more than the limit; Holm over all cells
  double df = 0;
  std::string best;  // the least mean of all rounds: what most likely is faster
  double shipped_us = 0, best_us = 0;
};

/// One per cell. Over all cells together the error rate is 5 %. Throws std::invalid_argument for
/// fewer than kFewestRegretRounds, unequal rounds, and times that are not positive.
std::vector<Regret> judge_regrets(std::span<const ChoiceTimes> cells, double limit);

/// What was chosen for fewer tokens and for the next larger count, round by round.
struct Step {
  std::vector<double> fewer_us, more_us;
};

/// Fewer tokens take longer than more: padding would win. `over`: by more than the limit. Holm over
/// all steps. Throws as judge_regrets() does.
struct Cliff {
  bool over = false;
  double share = 0, low = 0, high = 0;  // fewer / more - 1
  double p = 1, p_adjusted = 1, df = 0;
};
std::vector<Cliff> judge_cliffs(std::span<const Step> steps, double limit);

}  // namespace moegate
