// SPDX-License-Identifier: Apache-2.0
#include "harness/stats.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

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
  for (size_t i = 0; i < cut; ++i) {  // winsorise
    v[i] = v[cut];
    v[n - 1 - i] = v[n - 1 - cut];
  }
  const auto size = static_cast<double>(n), used = static_cast<double>(kept);
  const double error = stddev(v) * std::sqrt(size) / used;
  const boost::math::students_t t(used - 1);
  const double reach = error * boost::math::quantile(t, 0.5 + confidence / 2);
  return {center - reach, center + reach};
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
  if (!(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument("confidence not in (0, 1)");
  }
  const std::vector<double> v = sorted(values, "median interval");
  const size_t n = v.size();
  // [x_(l), x_(n+1-l)] misses the median with probability 2 P(B <= l - 1), B ~ Binomial(n, 1/2).
  // Find how many lower ranks may be skipped: the largest l - 1 that keeps this within the limit.
  const boost::math::binomial binomial(static_cast<double>(n), 0.5);
  const auto may_skip = [&](size_t rank) {
    return 2 * boost::math::cdf(binomial, static_cast<double>(rank)) <= 1 - confidence;
  };
  size_t low = 0;
  for (size_t high = (n - 1) / 2; low < high;) {
    const size_t middle = (low + high + 1) / 2;
    if (may_skip(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
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
  double sum = 0;
  for (const double x : values) {
    if (!(x > 0)) throw std::invalid_argument("geometric mean of a value that is not positive");
    sum += std::log(x);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace moegate
