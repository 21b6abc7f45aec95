// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/hypergeometric.hpp>
#include <cmath>

#include "harness/base/stats.h"

namespace moegate {
namespace {

constexpr double kInDoubt = 0.05;      // unadjusted p of the mean
constexpr double kSlowFactor = 2;      // times fail_at
constexpr double kSlowDeviations = 4;  // robust ones of base

/// How many processes of each side are slow, and from where on.
struct SlowProcesses {
  int base = 0, head = 0, n = 0;
  double from = 0;  // log above base's median
  double p = 1;
};

SlowProcesses slow_processes(const PairedQuestion& q, const Limits& limits) {
  SlowProcesses slow;
  slow.n = static_cast<int>(std::min(q.base_logs.size(), q.head_logs.size()));
  if (slow.n < 2) return slow;
  const double center = median(q.base_logs);
  std::vector<double> distances;
  for (const double log : q.base_logs) distances.push_back(std::abs(log - center));
  constexpr double kNormal = 1.4826;  // sd of a normal over its median absolute deviation
  slow.from = std::max(std::log1p(kSlowFactor * limits.fail_at),
                       kSlowDeviations * kNormal * median(distances));
  const auto count = [&](const std::vector<double>& logs) {
    return static_cast<int>(
        std::ranges::count_if(logs, [&](double log) { return log - center > slow.from; }));
  };
  slow.base = count(q.base_logs);
  slow.head = count(q.head_logs);
  slow.p = more_often(slow.head, slow.n, slow.base, slow.n);
  return slow;
}

std::string told(const SlowProcesses& slow) {
  return fmt::format("slower by more than {} in {} of {} processes, the base in {}",
                     limit(std::expm1(slow.from)), slow.head, slow.n, slow.base);
}

void judge_means(std::span<const PairedQuestion> family, const Limits& limits,
                 std::vector<Judgement>& judged) {
  std::vector<size_t> rows;
  std::vector<PairedQuestion> means;
  for (size_t i = 0; i < family.size(); ++i) {
    if (family[i].mean_log_ratios.size() < 2) continue;
    rows.push_back(i);
    means.push_back({family[i].mean_log_ratios, family[i].tick, {}, {}, {}});
  }
  const auto tails = judge_pairs(means, limits);
  for (size_t k = 0; k < rows.size(); ++k) {
    Judgement& j = judged[rows[k]];
    const Judgement& tail = tails[k];
    if (tail.outcome == Outcome::regressed) {
      worsen(j, Outcome::regressed, "the mean launch is " + tail.why);
    } else if (tail.p < kInDoubt) {
      worsen(j, Outcome::inconclusive, "the mean launch may be slower: " + tail.why);
    }
  }
}

void judge_processes(std::span<const PairedQuestion> family, const Limits& limits, double doubt,
                     std::vector<Judgement>& judged) {
  std::vector<SlowProcesses> slow;
  std::vector<double> p;
  for (const PairedQuestion& q : family) {
    slow.push_back(slow_processes(q, limits));
    p.push_back(slow.back().p);
  }
  const auto adjusted = holm(p);
  for (size_t i = 0; i < judged.size(); ++i) {
    const SlowProcesses& s = slow[i];
    if (adjusted[i] <= limits.alpha) {
      worsen(judged[i], Outcome::regressed,
             fmt::format("{} (adjusted p {:.2g})", told(s), adjusted[i]));
    } else if (s.p < doubt) {
      worsen(judged[i], Outcome::inconclusive, told(s));
    }
  }
}

}  // namespace

double more_often(int head, int of_head, int base, int of_base) {
  if (of_head <= 0 || of_base <= 0 || head <= 0) return 1;
  const auto unsigned_of = [](int n) { return static_cast<unsigned>(n); };
  const boost::math::hypergeometric_distribution<double> chance(
      unsigned_of(head + base), unsigned_of(of_head), unsigned_of(of_head + of_base));
  const auto least = std::max(0, head + base - of_base);  // that a distribution may be asked about
  if (head <= least) return 1;
  return boost::math::cdf(boost::math::complement(chance, unsigned_of(head - 1)));
}

void judge_tails(std::span<const PairedQuestion> family, const Limits& limits, double doubt,
                 std::vector<Judgement>& judged) {
  judge_means(family, limits, judged);
  judge_processes(family, limits, doubt, judged);
}

}  // namespace moegate
