// SPDX-License-Identifier: Apache-2.0
#include "harness/base/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "harness/base/rng.h"
#include "harness/base/stats.h"

namespace moegate {
namespace {

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
  std::sort(found.begin(), found.end(),
            [](const ChangePoint& a, const ChangePoint& b) { return a.at < b.at; });
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
