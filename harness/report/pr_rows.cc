// SPDX-License-Identifier: Apache-2.0
#include "harness/report/pr_rows.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace moegate {
namespace {

PrKind kind_of(const CaseVerdict& v) {
  if (v.outcome == Outcome::identical) return PrKind::same;
  if (v.outcome == Outcome::inconclusive && !v.latency) return PrKind::inconclusive;
  if (v.outcome == Outcome::wrong || !v.latency) return PrKind::uncompared;
  switch (latency_outcome(v)) {
    case Outcome::improved:
      return PrKind::faster;
    case Outcome::regressed:
      return PrKind::slower;
    case Outcome::pass:
      return PrKind::same;
    default:
      return PrKind::inconclusive;
  }
}

PrRow row_of(const CaseVerdict& v, const PrTables& tables) {
  static const PrCase unknown;
  PrRow row{&v, find_or_null(tables.cases, v.id.key), kind_of(v), {}, nullptr, nullptr};
  if (!row.facts) row.facts = &unknown;
  row.base = find_or_null(tables.base_sides, v.id);
  row.head = find_or_null(tables.head_sides, v.id);
  if (v.outcome == Outcome::identical) row.log_speedup = 0;
  if (v.outcome != Outcome::identical && row.kind != PrKind::uncompared && v.latency)
    row.log_speedup = -std::log1p(v.latency->effect);
  return row;
}

double two_sided(double df) {
  return boost::math::quantile(boost::math::students_t(df), 0.975);
}

/// Log speed-ups of a row by round.
ByRound by_round(const PrRow& row) {
  ByRound values;
  const Quantity quantity = compared(*row.base, *row.head);
  for (const auto& [round, level] : row.head->rounds(quantity)) {
    const double* base = find_or_null(row.base->rounds(quantity), round);
    if (base) values[round] = std::log(*base / level);
  }
  return values;
}

}  // namespace

std::map<PrGroup, std::vector<PrRow>> group_rows(const PrTables& tables) {
  std::map<PrGroup, std::vector<PrRow>> groups;
  for (const CaseVerdict& v : tables.result.cases) {
    const PrRow row = row_of(v, tables);
    groups[{v.id.suite, row.facts->model, row.facts->op, row.facts->config, v.id.variant}]
        .push_back(row);
  }
  for (auto& [group, rows] : groups) {
    std::stable_sort(rows.begin(), rows.end(), [](const PrRow& a, const PrRow& b) {
      return a.facts->tokens < b.facts->tokens;
    });
  }
  return groups;
}

std::optional<Interval> log_interval(const PrRow& row) {
  if (!row.log_speedup || !row.verdict->latency) return std::nullopt;
  if (row.verdict->outcome == Outcome::identical) return std::nullopt;
  const Judgement& j = *row.verdict->latency;
  if (!(j.df > 0)) return std::nullopt;
  const double reach = two_sided(j.df) * j.se;
  return Interval{*row.log_speedup - reach, *row.log_speedup + reach};
}

PrGeomean geomean_of(const std::vector<PrRow>& rows) {
  PrGeomean g;
  std::map<int, std::vector<double>> rounds;
  size_t timed = 0;
  for (const PrRow& row : rows) {
    if (!row.log_speedup) continue;
    ++g.n;
    g.log_speedup += *row.log_speedup;
    if (row.verdict->outcome == Outcome::identical || !row.base || !row.head) continue;
    ++timed;
    for (const auto& [round, value] : by_round(row)) rounds[round].push_back(value);
  }
  if (g.n == 0) return g;
  g.log_speedup /= g.n;
  g.all_identical = timed == 0;
  std::vector<double> speedups;
  for (const auto& [round, values] : rounds) {
    if (values.size() == timed)  // another set of rows would have another mean
      speedups.push_back(std::exp(mean(values) * static_cast<double>(timed) / g.n));
  }
  if (speedups.size() < 2) return g;
  const Interval rounds_say = geometric_mean_interval(speedups);
  const double reach = std::log(rounds_say.high / rounds_say.low) / 2;
  g.interval = Interval{g.log_speedup - reach, g.log_speedup + reach};
  return g;
}

}  // namespace moegate
