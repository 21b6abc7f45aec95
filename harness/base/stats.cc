// SPDX-License-Identifier: Apache-2.0
#include "harness/base/stats.h"

#include <boost/iterator/counting_iterator.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "harness/base/rng.h"

namespace moegate {
namespace {

std::vector<double> sorted(std::span<const double> values, const char* what) {
  if (values.empty()) throw std::invalid_argument(std::string(what) + " of no values");
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

/// How many values to cut from each end.
size_t trimmed_count(size_t n, double share) {
  if (!(share >= 0 && share < 0.5)) throw std::invalid_argument("trimmed share not in [0, 0.5)");
  // A hair more, so that a product like 0.29 * 100 = 28.999… cuts the 29 it means.
  return static_cast<size_t>(static_cast<double>(n) * share + 1e-9);
}

/// Sets the `cut` values at each end of sorted ones to their next neighbour's.
void winsorise(std::vector<double>& ordered, size_t cut) {
  const size_t n = ordered.size();
  std::fill_n(ordered.begin(), cut, ordered[cut]);
  std::fill_n(ordered.rbegin(), cut, ordered[n - 1 - cut]);
}

/// Variance of a standard normal whose `share` of each tail is winsorised.
double winsorised_normal_variance(double share) {
  if (share == 0) return 1;
  const boost::math::normal normal;
  const double z = boost::math::quantile(boost::math::complement(normal, share));
  return 1 - 2 * share - 2 * z * boost::math::pdf(normal, z) + 2 * share * z * z;
}

/// Inverse of trigamma by Newton's method on its reciprocal, which is convex and nearly linear:
/// converges from this start for every y > 0 (Smyth 2004, appendix).
double inverse_trigamma(double y) {
  double x = 0.5 + 1 / y;
  for (int i = 0; i < 50; ++i) {
    const double at = boost::math::trigamma(x);
    const double step = at * (1 - at / y) / boost::math::polygamma(2, x);
    x += step;
    if (-step < 1e-10 * x) break;
  }
  return x;
}

std::vector<double> logs(std::span<const double> values) {
  std::vector<double> v;
  for (const double x : values) {
    if (!(x > 0)) throw std::invalid_argument("geometric mean of a value that is not positive");
    v.push_back(std::log(x));
  }
  return v;
}

constexpr int kPermutations = 999;
constexpr uint64_t kSeed = 1;

struct Split {
  size_t at = 0;
  double statistic = -1;  // below every statistic of a split that is possible
};

/// Sums of distances between the values of two ranges, each in constant time.
class Distances {
 public:
  explicit Distances(std::span<const double> v) : width_(v.size() + 1), sums_(width_ * width_) {
    for (size_t i = 0; i < v.size(); ++i) {
      double row = 0;
      for (size_t j = 0; j < v.size(); ++j) {
        row += std::abs(v[i] - v[j]);
        sums_[(i + 1) * width_ + j + 1] = sums_[i * width_ + j + 1] + row;
      }
    }
  }
  double sum(size_t a, size_t b, size_t c, size_t d) const {  // of [a, b) and [c, d)
    return at(b, d) - at(a, d) - at(b, c) + at(a, c);
  }

 private:
  double at(size_t i, size_t j) const { return sums_[i * width_ + j]; }
  size_t width_;
  std::vector<double> sums_;  // over [0, i) and [0, j)
};

/// The `at` of the largest energy statistic
///   q = m k / (m + k) * (2 E|X - Y| - E|X - X'| - E|Y - Y'|),
/// m values X = [0, at) and k values Y = [at, end), over every at and end; means over distinct
/// pairs. Without the search for the end, a level that is left and returned to would hide.
Split best_split(std::span<const double> v) {
  const size_t n = v.size(), least = kFewestBetweenChanges;
  Split best;
  if (n < 2 * least) return best;
  const Distances distances(v);
  for (size_t at = least; at + least <= n; ++at) {
    const auto m = static_cast<double>(at);
    const double in_x = distances.sum(0, at, 0, at) / (m * (m - 1));  // each pair counts twice
    for (size_t end = at + least; end <= n; ++end) {
      const auto k = static_cast<double>(end - at);
      const double in_y = distances.sum(at, end, at, end) / (k * (k - 1));
      const double between = distances.sum(0, at, at, end) / (m * k);
      const double q = m * k / (m + k) * (2 * between - in_x - in_y);
      if (q > best.statistic) best = {at, q};
    }
  }
  return best;
}

/// The best split over all segments; `bounds` are their ends, 0 and the series' own among them.
Split best_split(std::span<const double> values, const std::vector<size_t>& bounds) {
  Split best;
  for (size_t s = 0; s + 1 < bounds.size(); ++s) {
    const Split split = best_split(values.subspan(bounds[s], bounds[s + 1] - bounds[s]));
    if (split.statistic > best.statistic) best = {bounds[s] + split.at, split.statistic};
  }
  return best;
}

/// Share of permutations within the segments whose best split is at least as good. Ends early, at a
/// share above `alpha`, where so many are that the whole would not be below it.
double p_value(std::span<const double> values, const std::vector<size_t>& bounds, double statistic,
               double alpha) {
  const auto share = [](int as_good) { return (1.0 + as_good) / (1.0 + kPermutations); };
  // Rounding in another order of summation must not make an equal split a lesser one.
  const double threshold = statistic * (1 - 1e-9);
  std::vector<double> shuffled(values.begin(), values.end());
  int as_good = 0;
  for (int p = 0; p < kPermutations && share(as_good) <= alpha; ++p) {
    for (size_t s = 0; s + 1 < bounds.size(); ++s) {
      for (size_t i = bounds[s + 1] - 1; i > bounds[s]; --i) {
        const uint64_t bits = random_bits(kSeed, static_cast<uint64_t>(p), i);
        std::swap(shuffled[i], shuffled[bounds[s] + bits % (i - bounds[s] + 1)]);
      }
    }
    if (best_split(shuffled, bounds).statistic >= threshold) ++as_good;
  }
  return share(as_good);
}

}  // namespace

double median(std::span<const double> values) {
  const std::vector<double> v = sorted(values, "median");
  const size_t half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : std::midpoint(v[half - 1], v[half]);
}

double trimmed_mean(std::span<const double> values, double share) {
  const std::vector<double> v = sorted(values, "trimmed mean");
  const size_t cut = trimmed_count(v.size(), share);
  return mean(std::span(v).subspan(cut, v.size() - 2 * cut));
}

Interval trimmed_mean_interval(std::span<const double> values, double share, double confidence) {
  std::vector<double> v = sorted(values, "trimmed mean interval");
  const size_t n = v.size(), cut = trimmed_count(n, share), kept = n - 2 * cut;
  const double center = mean(std::span(v).subspan(cut, kept));
  if (kept < 2) return {v.front(), v.back()};
  winsorise(v, cut);
  const auto size = static_cast<double>(n), used = static_cast<double>(kept);
  const double error = stddev(v) * std::sqrt(size) / used;
  const boost::math::students_t t(used - 1);
  const double reach = error * boost::math::quantile(t, 0.5 + confidence / 2);
  return {center - reach, center + reach};
}

double student_975(double df) {
  return boost::math::quantile(boost::math::students_t(df), 0.975);
}

double mean(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("mean of no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double stddev(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double sum = 0;  // two passes: sum(x^2) - n*mean^2 cancels when the spread is small
  for (const double x : values) sum += (x - center) * (x - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

Interval median_interval(std::span<const double> values, double confidence) {
  if (!(confidence > 0 && confidence < 1)) throw std::invalid_argument("confidence not in (0, 1)");
  const std::vector<double> v = sorted(values, "median interval");
  const size_t n = v.size();
  // [x_(l), x_(n+1-l)] misses the median with probability 2 P(B <= l - 1), B ~ Binomial(n, 1/2).
  // Find how many lower ranks may be skipped: the largest l - 1 that keeps this within the limit.
  const boost::math::binomial binomial(static_cast<double>(n), 0.5);
  const auto may_skip = [&](int rank) {
    return 2 * boost::math::cdf(binomial, rank) <= 1 - confidence;
  };
  const boost::counting_iterator<int> first(1), last(static_cast<int>((n - 1) / 2) + 1);
  const auto low = static_cast<size_t>(std::partition_point(first, last, may_skip) - first);
  return {v[low], v[n - 1 - low]};
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double floor = 0;  // adjusted values never decrease
  for (size_t i = 0; i < order.size(); ++i) {
    floor = std::max(floor, std::min(1.0, static_cast<double>(p.size() - i) * p[order[i]]));
    adjusted[order[i]] = floor;
  }
  return adjusted;
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("geometric mean of no values");
  return std::exp(mean(logs(values)));
}

Interval geometric_mean_interval(std::span<const double> values, double confidence) {
  if (values.empty()) throw std::invalid_argument("geometric mean interval of no values");
  const Interval interval = trimmed_mean_interval(logs(values), 0, confidence);
  return {std::exp(interval.low), std::exp(interval.high)};
}

double hodges_lehmann(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("Hodges-Lehmann estimate of no values");
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t k = i; k < values.size(); ++k) means.push_back(std::midpoint(values[i], values[k]));
  }
  return median(means);
}

VariancePrior fit_prior(std::span<const double> variances, double df, double tails) {
  if (variances.size() < 2) throw std::invalid_argument("prior of fewer than two variances");
  if (!(df > 0)) throw std::invalid_argument("prior of variances without degrees of freedom");
  if (!(tails >= 0 && tails <= 0.25)) throw std::invalid_argument("tails not in [0, 0.25]");
  std::vector<double> v = sorted(variances, "prior");
  const double least = 1e-5 * median(v);
  if (!(least > 0)) throw std::invalid_argument("prior of variances that are mostly zero");
  for (double& x : v) x = std::log(std::max(x, least));
  const size_t cut = trimmed_count(v.size(), tails);
  winsorise(v, cut);
  const double share = static_cast<double>(cut) / static_cast<double>(v.size());
  // log s^2 of one true variance has mean digamma(df/2) - log(df/2) and variance trigamma(df/2);
  // what the variances spread beyond that is the prior's.
  const auto offset = [](double half) { return boost::math::digamma(half) - std::log(half); };
  const double center = mean(v) - offset(df / 2);
  const double spread = stddev(v);
  const double beyond =
      spread * spread / winsorised_normal_variance(share) - boost::math::trigamma(df / 2);
  if (!(beyond > 0)) return {std::numeric_limits<double>::infinity(), std::exp(center)};
  const double half = inverse_trigamma(beyond);
  return {2 * half, std::exp(center + offset(half))};
}

std::vector<ChangePoint> change_points(std::span<const double> values, double alpha) {
  std::vector<size_t> bounds = {0, values.size()};
  std::vector<ChangePoint> found;
  while (true) {
    const Split split = best_split(values, bounds);
    // A constant series has splits of statistic 0, all of them as good.
    if (!(split.statistic > 0)) break;
    const double p = p_value(values, bounds, split.statistic, alpha);
    if (p > alpha) break;
    bounds.insert(std::upper_bound(bounds.begin(), bounds.end(), split.at), split.at);
    found.push_back({split.at, 0, 0, p});
  }
  std::ranges::sort(found, {}, &ChangePoint::at);
  for (size_t i = 0; i < found.size(); ++i) {  // found[i] lies at bounds[i + 1]
    const auto level = [&](size_t s) {
      return median(values.subspan(bounds[s], bounds[s + 1] - bounds[s]));
    };
    found[i].before = level(i);
    found[i].after = level(i + 1);
  }
  return found;
}

}  // namespace moegate
