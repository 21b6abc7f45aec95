// SPDX-License-Identifier: Apache-2.0
#include "harness/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/stats.h"

namespace moegate {
namespace {

using boost::math::students_t;

constexpr double kConfidence = 0.95;  // of each bound, one-sided: high < fail_at is equivalence
constexpr double kPower = 0.9;        // of the minimal detectable effect

/// A case's spread far above the prior (F test at this level) was not drawn from it.
constexpr double kForeignSpread = 0.05;

/// Two runs of an unchanged tree differ by more than their processes do: allocations, neighbours
/// and clocks of that hour. Sd of this case x run effect as a share of the process sd, assumed;
/// verdict_test.cc simulates what follows: without it, machines noisier than the prior fail too
/// many unchanged nights.
constexpr double kSessionShare = 0.6;

struct Spread {
  double sd;  // of one process's log level
  double df;
  bool own;  // from the case alone, nothing borrowed
};

/// The variance of one process, moderated: with 3 processes a side, the case's own spread alone
/// would need a t of 9 in a family of 60; the prior makes that 4 (Smyth 2004, limma). Where the
/// case is plainly noisier than the prior expects, the prior would lie about it and only its own
/// spread counts (as in Phipson et al. 2016), and its p is doubled, because the spread chose the
/// test.
Spread moderated(const Question& q, const Limits& limits) {
  const double d = q.base.n + q.head.n - 2;
  const double pooled = ((q.base.n - 1) * q.base.sd_log * q.base.sd_log +
                         (q.head.n - 1) * q.head.sd_log * q.head.sd_log) /
                        d;
  const double prior = limits.prior_sd * limits.prior_sd;
  const boost::math::fisher_f f(d, limits.prior_df);
  if (pooled > prior * boost::math::quantile(boost::math::complement(f, kForeignSpread))) {
    return {std::sqrt(pooled), d, true};
  }
  const double df = limits.prior_df + d;
  return {std::sqrt((limits.prior_df * prior + d * pooled) / df), df, false};
}

struct Test {
  double delta = 0;   // log effect
  double margin = 0;  // log
  double se = 0, df = 0, sd = 0;
  double choices = 1;  // tests among which the spread chose
  bool possible = false;

  double p_slower() const { return upper_tail((delta - margin) / se); }
  double p_faster() const { return upper_tail((-delta - margin) / se); }
  double quantile(double p) const {
    return boost::math::quantile(boost::math::complement(students_t(df), p));
  }

 private:
  double upper_tail(double t) const {
    return std::min(1.0, choices * boost::math::cdf(boost::math::complement(students_t(df), t)));
  }
};

Test test_of(const Question& q, const Limits& limits) {
  Test t;
  t.delta = q.head.mean_log - q.base.mean_log;
  t.margin = std::log1p(std::max(limits.margin, 2 * q.tick));
  t.possible = q.base.n >= 2 && q.head.n >= 2;
  if (!t.possible) return t;
  const Spread spread = moderated(q, limits);
  t.sd = spread.sd;
  t.df = spread.df;
  t.choices = spread.own ? 2 : 1;
  const double runs = 2 * kSessionShare * kSessionShare;
  t.se = std::hypot(spread.sd * std::sqrt(1.0 / q.base.n + 1.0 / q.head.n + runs), q.extra_sd);
  return t;
}

/// The smallest slow-down that passes both hurdles with probability kPower: the test, and the
/// estimate itself, which must reach fail_at.
double detectable(const Test& t, const Limits& limits, size_t family) {
  const double alpha = limits.alpha / t.choices / static_cast<double>(family);
  const double by_test = t.margin + (t.quantile(alpha) + t.quantile(1 - kPower)) * t.se;
  const double by_estimate = std::log1p(limits.fail_at) + t.quantile(1 - kPower) * t.se;
  return std::expm1(std::max(by_test, by_estimate));
}

/// A limit, not an effect: without sign.
std::string limit(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string numbers(const Judgement& j, const Question& q, const Test& t) {
  return fmt::format("{} [{}, {}], {} against {} processes that spread by {:.2g} %",
                     percent(j.effect), percent(j.low), percent(j.high), q.head.n, q.base.n,
                     100 * t.sd);
}

void decide(Judgement& j, double p_faster, const Question& q, const Test& t, const Limits& limits) {
  const std::string what = numbers(j, q, t);
  const double fail_at = std::log1p(limits.fail_at);
  if (j.p_adjusted <= limits.alpha && t.delta >= fail_at) {
    j.outcome = Outcome::regressed;
    j.why = fmt::format("slower: {}; adjusted p {:.2g} for more than {}", what, j.p_adjusted,
                        limit(std::expm1(t.margin)));
  } else if (p_faster <= limits.alpha && t.delta <= -fail_at) {
    j.outcome = Outcome::improved;
    j.why = fmt::format("faster: {}; adjusted p {:.2g}", what, p_faster);
  } else if (j.high < limits.fail_at) {
    j.outcome = Outcome::pass;
    j.why = fmt::format("not slower by {} or more: {}", limit(limits.fail_at), what);
  } else {
    j.outcome = Outcome::inconclusive;
    j.why = fmt::format("neither slower nor shown equal: {}; {} would be seen", what, limit(j.mde));
  }
}

Judgement measure(const Question& q, const Test& t, const Limits& limits, size_t family) {
  Judgement j;
  j.effect = std::expm1(t.delta);
  if (!t.possible) {
    j.low = j.high = j.effect;
    j.blind = true;
    j.why = fmt::format(
        "{} with {} process now and {} in the baseline: spread unknown; use --rounds 2 "
        "or more",
        percent(j.effect), q.head.n, q.base.n);
    return j;
  }
  const double reach = t.quantile(1 - kConfidence) * t.se;
  j.low = std::expm1(t.delta - reach);
  j.high = std::expm1(t.delta + reach);
  j.df = t.df;
  j.p = t.p_slower();
  j.mde = detectable(t, limits, family);
  j.blind = j.mde > limits.blind_at;
  return j;
}

}  // namespace

const char* name_of(Outcome o) {
  constexpr std::array<const char*, kOutcomes> kNames = {
      "pass",    "regressed", "improved",    "inconclusive", "wrong",
      "missing", "new",       "environment", "identical",    "waived"};
  return kNames.at(static_cast<size_t>(o));
}

std::string percent(double share) {
  const double p = 100 * share;
  // "+0.0 %" says more than "-0.0 %"; digits beyond a tenth are noise.
  return fmt::format("{:+.1f} %", std::abs(p) < 0.05 ? 0.0 : p);
}

Evidence Evidence::of(std::span<const double> levels) {
  Evidence e;
  e.n = static_cast<int>(levels.size());
  if (levels.empty()) return e;
  std::vector<double> logs;
  for (const double level : levels) logs.push_back(std::log(level));
  e.mean_log = mean(logs);
  e.sd_log = stddev(logs);
  return e;
}

double Evidence::level() const {
  return n > 0 ? std::exp(mean_log) : 0;
}

std::vector<Judgement> judge_family(std::span<const Question> family, const Limits& limits) {
  std::vector<Test> tests;
  std::vector<double> slower, faster;  // p-values of the cases that can be tested
  for (const Question& q : family) {
    tests.push_back(test_of(q, limits));
    if (!tests.back().possible) continue;
    slower.push_back(tests.back().p_slower());
    faster.push_back(tests.back().p_faster());
  }
  const auto slower_adjusted = holm(slower);
  const auto faster_adjusted = holm(faster);
  std::vector<Judgement> judgements;
  for (size_t i = 0, k = 0; i < family.size(); ++i) {
    Judgement j = measure(family[i], tests[i], limits, slower.size());
    if (tests[i].possible) {
      j.p_adjusted = slower_adjusted[k];
      decide(j, faster_adjusted[k], family[i], tests[i], limits);
      ++k;
    }
    if (family[i].extra_sd > 0) {
      j.why += fmt::format(
          "; the sides are from two devices of this class, {:.2g} % added to the "
          "standard error",
          100 * family[i].extra_sd);
    }
    judgements.push_back(std::move(j));
  }
  return judgements;
}

}  // namespace moegate
