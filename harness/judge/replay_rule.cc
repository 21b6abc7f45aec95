// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/replay_rule.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "harness/judge/tails.h"

namespace moegate {
namespace {

constexpr double kSuspicious = 0.05;

bool suspicious(const Judgement& j) {
  switch (j.outcome) {
    case Outcome::pass:
      return j.p < kSuspicious || j.p_faster < kSuspicious;
    case Outcome::regressed:
    case Outcome::improved:
    case Outcome::inconclusive:
      return true;
    default:
      return false;
  }
}

/// One of two planned looks.
Limits one_look(Limits limits) {
  limits.alpha /= 2;
  return limits;
}

std::vector<Judgement> judge_rounds(std::span<const PairedQuestion> family, const Limits& limits,
                                    double doubt) {
  auto judged = judge_pairs(family, limits);
  judge_tails(family, limits, doubt, judged);
  return judged;
}

}  // namespace

std::vector<Judgement> screen(std::span<const PairedQuestion> family, const Limits& limits) {
  return judge_rounds(family, limits, kDoubtOnTheWay);
}

std::vector<size_t> suspects(std::span<const Judgement> screened) {
  std::vector<size_t> go_on;
  for (size_t i = 0; i < screened.size(); ++i) {
    if (suspicious(screened[i])) go_on.push_back(i);
  }
  return go_on;
}

Confirmed confirm(std::span<const PairedQuestion> family, const Limits& limits,
                  const ReplayPlan& plan) {
  if (plan.extra_rounds == 0) return {judge_rounds(family, limits, kLastDoubt), {}};
  Confirmed confirmed{judge_rounds(family, one_look(limits), kDoubtOnTheWay), {}};
  for (size_t i = 0; i < family.size(); ++i) {
    if (confirmed.judgements[i].outcome == Outcome::inconclusive) confirmed.undecided.push_back(i);
  }
  return confirmed;
}

std::vector<Judgement> extend(Confirmed first, std::span<const PairedQuestion> again,
                              const Limits& limits) {
  if (again.size() != first.undecided.size()) {
    throw std::invalid_argument(
        fmt::format("{} rows extended, {} are undecided", again.size(), first.undecided.size()));
  }
  const auto judged = judge_rounds(again, one_look(limits), kLastDoubt);
  for (size_t i = 0; i < judged.size(); ++i) first.judgements[first.undecided[i]] = judged[i];
  return std::move(first.judgements);
}

}  // namespace moegate
