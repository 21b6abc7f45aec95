// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "harness/base/stats.h"

namespace moegate {
namespace {

/// No split of a series has means further apart than this many standard errors: it has no step. Of
/// a hundred series without one, about three are searched for nothing.
constexpr double kClearSplit = 3;

size_t first_searched(const Points& points) {
  return points.size() - std::min(points.size(), kSearched);
}

std::vector<double> newest_logs(const Points& points) {
  std::vector<double> logs;
  for (size_t i = first_searched(points); i < points.size(); ++i)
    logs.push_back(points[i]->mean_log);
  return logs;
}

/// The distance of the means that the clearest split has, squared, in standard errors.
double clearest_split(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double all = std::accumulate(values.begin(), values.end(), 0.0);
  double squares = 0, left = 0, clearest = 0;
  for (const double x : values) squares += (x - all / n) * (x - all / n);
  for (size_t i = 1; i < values.size(); ++i) {
    left += values[i - 1];
    const auto k = static_cast<double>(i);
    const double gap = left / k - (all - left) / (n - k);
    const double between = gap * gap * k * (n - k) / n;  // of the sum of squares
    const double within = (squares - between) / std::max(1.0, n - 2);
    if (within > 0) clearest = std::max(clearest, between / within);
    if (within <= 0 && between > 0) clearest = std::numeric_limits<double>::infinity();
  }
  return clearest;
}

}  // namespace

std::map<int, Points> histories_of(const SiteData& data, const SiteRow& row) {
  std::map<int, Points> histories;
  for (const SitePoint& p : row.points) {
    if (p.level) histories[data.runs[p.run].conditions].push_back(&p);
  }
  return histories;
}

std::map<size_t, double> steps_of(const Points& points) {
  const size_t first = first_searched(points);
  std::map<size_t, double> steps;
  for (const ChangePoint& change : change_points(newest_logs(points)))
    steps[first + change.at] = std::expm1(change.after - change.before);
  return steps;
}

StepSearch plan_search(const SiteData& data, size_t work) {
  struct Candidate {
    double split;
    size_t row;
    int conditions;
    size_t cost;
  };
  std::vector<Candidate> candidates;
  for (size_t row = 0; row < data.rows.size(); ++row) {
    for (const auto& [conditions, points] : histories_of(data, data.rows[row])) {
      const std::vector<double> logs = newest_logs(points);
      const double split = clearest_split(logs);
      if (split > kClearSplit * kClearSplit)
        candidates.push_back({split, row, conditions, logs.size() * logs.size()});
    }
  }
  std::ranges::sort(candidates, {},
                    [](const Candidate& c) { return std::tuple(-c.split, c.row, c.conditions); });
  StepSearch search;
  auto next = candidates.begin();
  for (; next != candidates.end() && next->cost <= work; ++next) {
    work -= next->cost;
    search.searched.emplace(next->row, next->conditions);
  }
  for (; next != candidates.end(); ++next) search.left_out.emplace(next->row, next->conditions);
  return search;
}

}  // namespace moegate
