// SPDX-License-Identifier: Apache-2.0
// Steps in the histories of a site: which histories are searched for them, and what is found.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "harness/report/site_data.h"

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

/// Whether some split parts the newest points clearly; what costs little is asked before what costs much.
bool may_have_step(const Points& points);
/// The steps among the newest points: the change, a share, by the index of the point after it.
std::map<size_t, double> steps_of(const Points& points);

/// Of the histories that may have a step, those that are searched, by the index of their row and their
/// conditions: the clearest splits first, for as long as their squares are within `work`.
std::set<std::pair<size_t, int>> searched_histories(const SiteData& data,
                                                    size_t work = kSearchWork);

}  // namespace moegate
