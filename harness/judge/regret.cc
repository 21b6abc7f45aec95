// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/regret.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>

#include "harness/base/stats.h"

namespace moegate {
namespace {

constexpr double kRegretAlpha = 0.05;
constexpr double kLeastRegret = 0.01;  // less is not worth a change, even if it is certain

void check_times(std::span<const double> us, size_t rounds) {
  if (rounds < kFewestRegretRounds) throw std::invalid_argument("too few rounds");
  if (us.size() != rounds) throw std::invalid_argument("unequal rounds");
  for (const double one : us) {
    if (!(one > 0)) throw std::invalid_argument("a time that is not positive");
  }
}

/// Mean of the logarithms over the rounds of a half: 0 even, 1 odd; of all rounds with step 1.
double mean_log(const Alternative& one, size_t first, size_t step) {
  double sum = 0, n = 0;
  for (size_t i = first; i < one.us.size(); i += step, ++n) sum += std::log(one.us[i]);
  return sum / n;
}

/// The fastest by some rounds; of equals the shipped one, then the first.
const Alternative& fastest(const ChoiceTimes& cell, size_t first, size_t step) {
  const auto log_us = [&](const Alternative& one) { return mean_log(one, first, step); };
  const auto other = std::ranges::min_element(cell.others, {}, log_us);
  const bool is_other = other != cell.others.end() && log_us(*other) < log_us(cell.shipped);
  return is_other ? *other : cell.shipped;
}

struct Difference {
  double mean = 0, se = 0, df = 0;

  /// Whether it is above `margin`. Two-sided: chance favours what one half names in the other, too,
  /// if only a little (regret_test.cc).
  double p_above(double margin) const {
    if (se <= 0) return mean > margin ? 0 : 1;
    const boost::math::students_t t(df);
    return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(t, (mean - margin) / se)));
  }
  double reach() const { return se <= 0 ? 0 : se * student_975(df); }
};

/// Log of shipped over best: each half by what the other half names. The halves have means of their
/// own, as they may have named different ones.
Difference regret_of(const ChoiceTimes& cell) {
  const size_t rounds = cell.shipped.us.size();
  double sum = 0, squares = 0;
  for (const size_t half : {0u, 1u}) {
    const Alternative& best = fastest(cell, 1 - half, 2);
    std::vector<double> logs;
    for (size_t i = half; i < rounds; i += 2) {
      logs.push_back(std::log(cell.shipped.us[i] / best.us[i]));
    }
    const double middle = mean(logs);
    for (const double x : logs) {
      sum += x;
      squares += (x - middle) * (x - middle);
    }
  }
  const auto n = static_cast<double>(rounds);
  return {sum / n, std::sqrt(squares / (n - 2) / n), n - 2};
}

Difference cliff_of(const Step& step) {
  std::vector<double> logs;
  for (size_t i = 0; i < step.fewer_us.size(); ++i) {
    logs.push_back(std::log(step.fewer_us[i] / step.more_us[i]));
  }
  const auto n = static_cast<double>(logs.size());
  return {mean(logs), stddev(logs) / std::sqrt(n), n - 1};
}

/// What both kinds have in common.
template <class Answer>
Answer answer_of(const Difference& d, double limit) {
  Answer answer;
  answer.share = std::expm1(d.mean);
  answer.low = std::expm1(d.mean - d.reach());
  answer.high = std::expm1(d.mean + d.reach());
  answer.p = d.p_above(std::log1p(limit));
  answer.df = d.df;
  return answer;
}

template <class Answer>
void adjust(std::vector<Answer>& answers, const std::vector<size_t>& tested) {
  std::vector<double> p;
  for (const size_t i : tested) p.push_back(answers[i].p);
  const std::vector<double> adjusted = holm(p);
  for (size_t k = 0; k < tested.size(); ++k) answers[tested[k]].p_adjusted = adjusted[k];
}

}  // namespace

std::vector<Regret> judge_regrets(std::span<const ChoiceTimes> cells, double limit) {
  std::vector<Regret> regrets;
  std::vector<size_t> tested;
  for (const ChoiceTimes& cell : cells) {
    const size_t rounds = cell.shipped.us.size();
    check_times(cell.shipped.us, rounds);
    for (const Alternative& other : cell.others) check_times(other.us, rounds);
    Regret regret;
    if (!cell.others.empty()) {
      regret = answer_of<Regret>(regret_of(cell), limit);
      tested.push_back(regrets.size());
    }
    const Alternative& best = fastest(cell, 0, 1);
    regret.best = best.name;
    regret.best_us = std::exp(mean_log(best, 0, 1));
    regret.shipped_us = std::exp(mean_log(cell.shipped, 0, 1));
    regrets.push_back(regret);
  }
  adjust(regrets, tested);
  for (const size_t i : tested) {
    Regret& r = regrets[i];
    const bool is_over = r.p_adjusted <= kRegretAlpha && r.low > limit;
    const bool is_best = r.low <= 0 || r.share < kLeastRegret;
    r.finding = is_over   ? RegretFinding::regret
                : is_best ? RegretFinding::best
                          : RegretFinding::within;
  }
  return regrets;
}

std::vector<Cliff> judge_cliffs(std::span<const Step> steps, double limit) {
  std::vector<Cliff> cliffs;
  std::vector<size_t> tested;
  for (const Step& step : steps) {
    check_times(step.fewer_us, step.fewer_us.size());
    check_times(step.more_us, step.fewer_us.size());
    tested.push_back(cliffs.size());
    cliffs.push_back(answer_of<Cliff>(cliff_of(step), limit));
  }
  adjust(cliffs, tested);
  for (Cliff& cliff : cliffs) cliff.over = cliff.p_adjusted <= kRegretAlpha && cliff.low > limit;
  return cliffs;
}

}  // namespace moegate
