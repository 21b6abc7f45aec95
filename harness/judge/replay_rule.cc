// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/replay_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "harness/base/rng.h"
#include "harness/base/stats.h"
#include "harness/judge/tails.h"

namespace moegate {
namespace {

constexpr int kFewestRounds = 8;
constexpr size_t kFewestRowsOff = 6;
constexpr double kNearlyAll = 0.9;
constexpr int kShareOfRounds = 3;  // a third of them

/// By lane and round: how far each row was from its median, as logs.
std::map<std::pair<size_t, int>, std::vector<double>> offs(std::span<const RoundsOfRow> rows,
                                                           bool head, int first, int last) {
  std::map<std::pair<size_t, int>, std::vector<double>> by_process;
  for (const RoundsOfRow& row : rows) {
    const auto& levels = head ? row.head : row.base;
    ByRound logs;
    std::vector<double> all;
    for (const auto& [round, level] : levels) {
      if (round < first || round >= last) continue;
      all.push_back(logs[round] = std::log(level));
    }
    if (all.size() < kFewestRounds) continue;
    const double middle = median(all);
    for (const auto& [round, level] : logs) by_process[{row.lane, round}].push_back(level - middle);
  }
  return by_process;
}

long count_side(std::span<const WildProcess> processes, bool head) {
  return std::ranges::count(processes, head, &WildProcess::head);
}

constexpr double kSuspicious = 0.05;

bool suspicious(const Judgement& j) {
  if (j.outcome == Outcome::pass) return j.p < kSuspicious || j.p_faster < kSuspicious;
  return j.outcome == Outcome::regressed || j.outcome == Outcome::improved ||
         j.outcome == Outcome::inconclusive;
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

bool base_leads(uint32_t seed, int round) {
  const bool drawn = (random_bits(seed, 0, static_cast<uint64_t>(round / 2)) & 1) != 0;
  return (round % 2 == 0) == drawn;
}

std::string WildProcess::text() const {
  return fmt::format("the {}'s process of round {}: {} of {} rows off, by {}",
                     head ? "head" : "base", round, rows, all, percent(off));
}

double far_off(const Limits& limits) {
  constexpr double kLeast = 0.1;  // from less on, phases of a periodic load would be picked
  return std::log1p(std::max(kLeast, 2 * limits.fail_at));
}

std::vector<WildProcess> wild_processes(std::span<const RoundsOfRow> rows, int first, int last,
                                        double far) {
  std::vector<WildProcess> wild;
  if (last - first < kFewestRounds) return wild;
  for (const bool head : {false, true}) {
    for (const auto& [process, off] : offs(rows, head, first, last)) {
      const auto slower = std::ranges::count_if(off, [&](double x) { return x >= far; });
      const auto faster = std::ranges::count_if(off, [&](double x) { return x <= -far; });
      const auto n = static_cast<size_t>(std::max(slower, faster));
      if (n < kFewestRowsOff ||
          static_cast<double>(n) < kNearlyAll * static_cast<double>(off.size()))
        continue;
      wild.push_back({process.second, head, std::expm1(median(off)), n, off.size()});
    }
  }
  return wild;
}

std::optional<WildProcess> next_to_repeat(std::span<const WildProcess> wild,
                                          std::span<const WildProcess> again, int planned) {
  if (wild.size() + again.size() > static_cast<size_t>(planned / kShareOfRounds)) {
    return std::nullopt;
  }
  if (std::ranges::any_of(wild, [](const WildProcess& w) { return w.off < 0; })) return {};
  std::optional<WildProcess> wildest;
  for (const WildProcess& w : wild) {
    if (count_side(again, w.head) > count_side(again, !w.head)) continue;
    if (!wildest || w.off > wildest->off) wildest = w;
  }
  return wildest;
}

int measure_rounds(const RoundCalls& calls, int first, int planned, uint32_t seed, double far,
                   std::vector<WildProcess>& repeated) {
  int next = first;
  for (; next < first + planned; ++next) {
    if (!calls.measure(next, base_leads(seed, next))) return next;
  }
  std::vector<WildProcess> again;
  std::map<int, bool> order;  // of rounds that replace another
  while (true) {
    const auto wild = wild_processes(calls.levels(), first, next, far);
    const auto worst = next_to_repeat(wild, again, planned);
    if (!worst) return next;
    again.push_back(*worst);
    repeated.push_back(*worst);
    calls.drop(worst->round);
    const bool* known = find_or_null(order, worst->round);
    order[next] = known ? *known : base_leads(seed, worst->round);
    if (!calls.measure(next, order[next])) return next;
    ++next;
  }
}

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
