// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/creep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/base/stats.h"

namespace moegate {

CreepLimits CreepLimits::of(Backend backend, const Limits& limits) {
  CreepLimits own = backend == Backend::host ? host() : cuda();
  own.row = std::max(own.row, limits.fail_at);
  return own;
}

double creep(double low, double base, double anchor) {
  return (1 + low) * base / anchor - 1;
}

void apply_creep(GateResult& result, const std::map<std::string, Expectation>& expected,
                 const CreepLimits& limits) {
  for (CaseVerdict& v : result.cases) {
    const auto suite = expected.find(v.id.suite);
    if (!v.latency || suite == expected.end()) continue;
    const auto base = suite->second.sides.find(v.id);
    if (base == suite->second.sides.end() || base->second.anchor <= 0) continue;
    const Side& side = base->second;
    // At its anchor it has lost nothing yet: the judgement against the baseline is all there is.
    if (side.anchor >= side.level.level()) continue;
    v.creep = creep(v.latency->low, side.level.level(), side.anchor);
    if (v.creep <= limits.row) continue;
    v.why += fmt::format(
        "; creep: at least {} from its anchor {:.4g}, the best level blessed, more than {}",
        percent(v.creep), side.anchor, percent(limits.row));
    const bool unfailed = v.outcome == Outcome::pass || v.outcome == Outcome::inconclusive;
    if (unfailed) find(v, Rule::crept, v.why);
  }
  count_outcomes(result);
}

std::string beyond_anchor(const Baseline& baseline, const CreepLimits& limits) {
  std::vector<double> logs;
  for (const auto& [key, row] : baseline.rows) {
    const double above = creep(0, row.level, row.anchor);
    if (above > limits.row) {
      return fmt::format("{} {}: {:.4g} is {} from its anchor {:.4g}, more than {}", key.first,
                         key.second, row.level, percent(above), row.anchor, percent(limits.row));
    }
    logs.push_back(std::log1p(above));
  }
  const double above = logs.empty() ? 0 : std::expm1(mean(logs));
  if (above <= limits.geomean) return "";
  return fmt::format("the geometric mean of suite '{}' is {} from its anchors, more than {}",
                     baseline.header.suite, percent(above), percent(limits.geomean));
}

bool carry_anchors(const Baseline& before, Baseline& now) {
  constexpr size_t kFewest = 10;
  if (before.header.judged != now.header.judged) return false;
  std::map<std::pair<std::string, std::string>, double> own;  // scales
  std::vector<double> scales;
  for (const auto& [key, row] : now.rows) {
    const auto old = before.rows.find(key);
    if (old == before.rows.end() || row.code.empty() || row.code != old->second.code) continue;
    own[key] = row.level / old->second.level;
    scales.push_back(own[key]);
  }
  if (scales.size() < kFewest) return false;
  const double common = median(scales);
  for (auto& [key, row] : now.rows) {
    const auto old = before.rows.find(key), left = before.retired.find(key);
    if (old == before.rows.end() && left == before.retired.end()) continue;
    const double anchor = old != before.rows.end() ? old->second.anchor : left->second.anchor;
    const auto scale = own.find(key);
    row.anchor = std::min(row.level, anchor * (scale == own.end() ? common : scale->second));
  }
  for (auto& [key, row] : now.retired) {
    row.level *= common;
    row.anchor *= common;
  }
  return true;
}

void reset_anchors(Baseline& baseline) {
  for (auto& [key, row] : baseline.rows) row.anchor = row.level;
}

}  // namespace moegate
