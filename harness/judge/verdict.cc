// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/verdict.h"

#include <fmt/format.h>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>

#include "harness/base/stats.h"
#include "harness/base/text.h"

namespace moegate {

double Quantiles::student(double df, double p) {
  const auto [known, first] = students_.try_emplace(Key{df, p, 0});
  if (first) {
    const boost::math::students_t t(df);
    known->second = boost::math::quantile(boost::math::complement(t, p));
  }
  return known->second;
}

bool Quantiles::is_beyond(double ratio, double df1, double df2, double p) {
  constexpr double kNear = 1e-6;  // of the quantile: far more than the error of boost's
  const boost::math::fisher_f f(df1, df2);
  const auto [known, first] = fishers_.try_emplace(Key{df1, df2, p});
  if (first) known->second = boost::math::quantile(boost::math::complement(f, p));
  if (ratio < known->second * (1 - kNear)) return false;
  if (ratio > known->second * (1 + kNear)) return true;
  return boost::math::cdf(boost::math::complement(f, ratio)) < p;
}

namespace {

// In double throughout: by default it computes in long double, at twice the cost, for digits that
// no verdict has.
using students_t = boost::math::students_t_distribution<
    double, boost::math::policies::policy<boost::math::policies::promote_double<false>>>;

constexpr double kConfidence = 0.95;  // of each bound, one-sided: high < fail_at is equivalence
constexpr double kPower = 0.9;        // of the minimal detectable effect

/// A case's spread far above the prior (F test at this level) was not drawn from it.
constexpr double kForeignSpread = 0.05;

/// Two runs of an unchanged tree differ by more than their processes do: allocations, neighbours
/// and clocks of that hour. Sd of this case x run effect as a share of the process sd, assumed;
/// verdict_test.cc simulates what follows: without it, machines noisier than the prior fail too
/// many unchanged nights.
constexpr double kSessionShare = 0.6;

/// From this many cases on, a family says more about its noise than the limits do.
constexpr size_t kCasesForPrior = 10;

/// A fitted prior is held at this share of the expected sd or above: ticks of a timer and a quiet
/// hour make spreads that the next round need not keep.
constexpr double kQuietestPrior = 0.5;

struct Spread {
  double sd;  // of one observation
  double df;
  bool own;  // from the case alone, nothing borrowed
};

/// A case's variance with `df` degrees of freedom, moderated: with 3 processes a side, its own
/// spread alone would need a t of 9 in a family of 60; the prior makes that 4 (Smyth 2004, limma).
/// Where the case is plainly noisier than the prior expects, the prior would lie about it and only
/// its own spread counts (as in Phipson et al. 2016), and its p is doubled, because the spread
/// chose the test.
Spread moderated(double variance, double df, const VariancePrior& prior, Quantiles& quantiles) {
  if (quantiles.is_beyond(variance / prior.variance, df, prior.df, kForeignSpread)) {
    return {std::sqrt(variance), df, true};
  }
  const double both = prior.df + df;
  return {std::sqrt((prior.df * prior.variance + df * variance) / both), both, false};
}

/// One case ready to be judged, whatever was measured. Effects on the log scale.
struct Test {
  double delta = 0;
  double margin = 0;
  double se = 0, df = 0, sd = 0;
  double choices = 1;  // tests among which the spread chose
  bool possible = false;
  std::string sample;  // what the numbers rest on, or why they cannot be tested
  std::string remark;  // to end the sentence with

  void spread_by(const Spread& spread) {
    possible = true;
    sd = spread.sd;
    df = spread.df;
    choices = spread.own ? 2 : 1;
  }
  double p_slower() const { return upper_tail((delta - margin) / se); }
  double p_faster() const { return upper_tail((-delta - margin) / se); }

 private:
  double upper_tail(double t) const {
    return std::min(1.0, choices * boost::math::cdf(boost::math::complement(students_t(df), t)));
  }
};

double log_margin(const Limits& limits, double tick) {
  return std::log1p(std::max(limits.margin, 2 * tick));
}

Test test_of(const Question& q, const Limits& limits, Quantiles& quantiles) {
  Test t;
  t.delta = q.head.mean_log - q.base.mean_log;
  t.margin = log_margin(limits, q.tick);
  if (q.base.n < 2 || q.head.n < 2) {
    t.sample = fmt::format("with {} process now and {} in the baseline", q.head.n, q.base.n);
    return t;
  }
  const double d = q.base.n + q.head.n - 2;
  const double pooled = ((q.base.n - 1) * q.base.sd_log * q.base.sd_log +
                         (q.head.n - 1) * q.head.sd_log * q.head.sd_log) /
                        d;
  t.spread_by(
      moderated(pooled, d, {limits.prior_df, limits.prior_sd * limits.prior_sd}, quantiles));
  const double runs = 2 * kSessionShare * kSessionShare;
  const double own = t.sd * std::sqrt(1.0 / q.base.n + 1.0 / q.head.n + runs);
  t.se = std::hypot(own, q.extra_sd);
  if (q.extra_df > 0) {  // two estimates added up (Welch and Satterthwaite)
    t.df = std::pow(t.se, 4) / (std::pow(own, 4) / t.df + std::pow(q.extra_sd, 4) / q.extra_df);
  }
  t.sample = fmt::format("{} against {} processes that spread by {:.2g} %", q.head.n, q.base.n,
                         100 * t.sd);
  if (q.extra_sd > 0) {
    t.remark = fmt::format(
        "; the sides are from two devices of this class, {:.2g} % added to the standard error",
        100 * q.extra_sd);
  }
  return t;
}

double variance_of(const PairedQuestion& q) {
  const double sd = stddev(q.log_ratios);
  return sd * sd;
}

/// What the family's ratios spread by. Fitted from the cases that were measured in every round,
/// and worth no more degrees of freedom than those have together: a fit is an estimate too.
VariancePrior prior_of(std::span<const PairedQuestion> family, const Limits& limits) {
  const double expected = 2 * limits.prior_sd * limits.prior_sd;
  size_t rounds = 2;
  for (const PairedQuestion& q : family) rounds = std::max(rounds, q.log_ratios.size());
  std::vector<double> variances;
  for (const PairedQuestion& q : family) {
    // A timer's ticks can make all ratios equal; the logarithm of no variance says too much.
    if (q.log_ratios.size() == rounds)
      variances.push_back(std::max(variance_of(q), 1e-6 * expected));
  }
  if (variances.size() < kCasesForPrior) return {limits.prior_df, expected};
  const auto df = static_cast<double>(rounds - 1);
  const VariancePrior fitted = fit_prior(variances, df);
  return {std::min(fitted.df, df * static_cast<double>(variances.size())),
          std::max(fitted.variance, kQuietestPrior * kQuietestPrior * expected)};
}

Test test_of(const PairedQuestion& q, const Limits& limits, const VariancePrior& prior,
             Quantiles& quantiles) {
  Test t;
  const size_t rounds = q.log_ratios.size();
  if (rounds > 0) t.delta = mean(q.log_ratios);
  t.margin = log_margin(limits, q.tick);
  if (rounds < 2) {
    t.sample = "in " + count_of(rounds, "paired round");
    return t;
  }
  const auto n = static_cast<double>(rounds);
  t.spread_by(moderated(variance_of(q), n - 1, prior, quantiles));
  t.se = t.sd / std::sqrt(n);
  t.sample = fmt::format("{} paired rounds that spread by {:.2g} %", rounds, 100 * t.sd);
  return t;
}

/// The smallest slow-down that passes both hurdles with probability kPower: the test, and the
/// estimate itself, which must reach fail_at.
double detectable(const Test& t, const Limits& limits, size_t family, Quantiles& quantiles) {
  const double alpha = limits.alpha / t.choices / static_cast<double>(family);
  const double power = quantiles.student(t.df, 1 - kPower);
  const double by_test = t.margin + (quantiles.student(t.df, alpha) + power) * t.se;
  const double by_estimate = std::log1p(limits.fail_at) + power * t.se;
  return std::expm1(std::max(by_test, by_estimate));
}

void decide(Judgement& j, double faster_adjusted, const Test& t, const Limits& limits) {
  const std::string what =
      fmt::format("{} [{}, {}], {}", percent(j.effect), percent(j.low), percent(j.high), t.sample);
  const double fail_at = std::log1p(limits.fail_at);
  if (j.p_adjusted <= limits.alpha && t.delta >= fail_at) {
    j.outcome = Outcome::regressed;
    j.why = fmt::format("slower: {}; adjusted p {:.2g} for more than {}", what, j.p_adjusted,
                        limit(std::expm1(t.margin)));
  } else if (faster_adjusted <= limits.alpha && t.delta <= -fail_at) {
    j.outcome = Outcome::improved;
    j.why = fmt::format("faster: {}; adjusted p {:.2g}", what, faster_adjusted);
  } else if (j.high < limits.fail_at) {
    j.outcome = Outcome::pass;
    j.why = fmt::format("not slower by {} or more: {}", limit(limits.fail_at), what);
  } else {
    j.outcome = Outcome::inconclusive;
    const bool far = std::abs(t.delta) >= fail_at;
    j.why = fmt::format("{}: {}; {} would be seen",
                        far ? uncertain(j.effect) : "neither slower nor shown equal", what,
                        limit(j.mde));
  }
}

/// All but its p-values.
Judgement measure(const Test& t, const Limits& limits, size_t family, Quantiles& quantiles) {
  Judgement j;
  j.effect = std::expm1(t.delta);
  if (!t.possible) {
    j.low = j.high = j.effect;
    j.blind = true;
    j.why =
        fmt::format("{} {}: spread unknown; use --rounds 2 or more", percent(j.effect), t.sample);
    return j;
  }
  const double reach = quantiles.student(t.df, 1 - kConfidence) * t.se;
  j.low = std::expm1(t.delta - reach);
  j.high = std::expm1(t.delta + reach);
  j.se = t.se;
  j.df = t.df;
  j.mde = detectable(t, limits, family, quantiles);
  j.blind = j.mde > limits.blind_at;
  return j;
}

std::vector<Judgement> judge(std::span<const Test> tests, const Limits& limits,
                             Quantiles& quantiles) {
  std::vector<double> slower, faster;  // p-values of the cases that can be tested
  for (const Test& t : tests) {
    if (!t.possible) continue;
    slower.push_back(t.p_slower());
    faster.push_back(t.p_faster());
  }
  const auto slower_adjusted = holm(slower);
  const auto faster_adjusted = holm(faster);
  std::vector<Judgement> judgements;
  judgements.reserve(tests.size());
  size_t k = 0;
  for (const Test& t : tests) {
    Judgement j = measure(t, limits, slower.size(), quantiles);
    if (t.possible) {
      j.p = slower[k];
      j.p_faster = faster[k];
      j.p_adjusted = slower_adjusted[k];
      decide(j, faster_adjusted[k], t, limits);
      ++k;
    }
    j.why += t.remark;
    judgements.push_back(std::move(j));
  }
  return judgements;
}

}  // namespace

std::string limit(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string uncertain(double effect) {
  const double times = std::exp(std::abs(std::log1p(effect)));
  const char* way = effect > 0 ? "slower" : "faster";
  if (times > 1.95) return fmt::format("about {:.1f} times {}, not certain", times, way);
  const double share = 100 * std::abs(effect);
  if (share < 0.5) return "about as fast, not certain";
  return fmt::format("about {:.0f} % {}, not certain", share, way);
}

void worsen(Judgement& level, Outcome tail, const std::string& why) {
  const bool keeps = level.outcome == Outcome::regressed ||
                     (tail == Outcome::inconclusive && level.outcome != Outcome::pass);
  if (keeps) return;
  level.outcome = tail;
  level.why = why + "; the level: " + level.why;
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
  Quantiles quantiles;
  std::vector<Test> tests;
  tests.reserve(family.size());
  for (const Question& q : family) tests.push_back(test_of(q, limits, quantiles));
  return judge(tests, limits, quantiles);
}

std::vector<Judgement> judge_pairs(std::span<const PairedQuestion> family, const Limits& limits) {
  const VariancePrior prior = prior_of(family, limits);
  Quantiles quantiles;
  std::vector<Test> tests;
  for (const PairedQuestion& q : family) tests.push_back(test_of(q, limits, prior, quantiles));
  auto judged = judge(tests, limits, quantiles);
  for (size_t i = 0; i < judged.size(); ++i) {
    const auto& ratios = family[i].log_ratios;
    if (!ratios.empty()) judged[i].robust = std::expm1(hodges_lehmann(ratios));
  }
  return judged;
}

}  // namespace moegate
