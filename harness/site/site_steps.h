// SPDX-License-Identifier: Apache-2.0
// Steps in the histories of a site: which histories are searched for them, and what is found.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "harness/site/site_data.h"

namespace moegate {

/// Points of a history that are searched, the newest: the search is quadratic and more.
constexpr size_t kSearched = 60;
/// What all searches of a site may cost, in squares of the points of a history: so many of the longest,
/// which take about 10 s where each has two steps. Not a limit of time: of one store every machine makes
/// the same pages.
constexpr size_t kSearchWork = 1000 * kSearched * kSearched;

/// The points of a row in runs whose levels compare, in order.
using Points = std::vector<const SitePoint*>;
/// By conditions.
std::map<int, Points> histories_of(const SiteData& data, const SiteRow& row);

/// The steps among the newest points: the change, a share, by the index of the point after it.
std::map<size_t, double> steps_of(const Points& points);

/// Histories in which some split parts the newest points clearly, so that they may have a step, by the
/// index of their row and their conditions.
struct StepSearch {
  std::set<std::pair<size_t, int>> searched;
  std::set<std::pair<size_t, int>> left_out;  // for want of work
};
/// What costs little is asked of every history, what costs much of those with the clearest splits: for as
/// long as their squares are within `work`.
StepSearch plan_search(const SiteData& data, size_t work = kSearchWork);

}  // namespace moegate
