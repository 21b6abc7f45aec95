// SPDX-License-Identifier: Apache-2.0
#include "harness/night/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/base/stats.h"

namespace moegate {
namespace {

/// Squared normal deviate of "no difference".
double squared_z(const Judgement& j) {
  const boost::math::students_t t(j.df);
  const double p =
      2 * boost::math::cdf(boost::math::complement(t, std::abs(std::log1p(j.effect)) / j.se));
  const boost::math::chi_squared chi2(1);
  return boost::math::quantile(boost::math::complement(chi2, std::max(p, 1e-300)));
}

double median_chi_squared() {
  return boost::math::quantile(boost::math::chi_squared(1), 0.5);
}

double median_or_0(const std::vector<double>& values) {
  return values.empty() ? 0 : median(values);
}

struct Columns {
  std::vector<double> effects, sds, z2s, mdes;
};

void add(Calibration& c, Columns& columns, const Judgement& j, const Side& base, const Side& head) {
  ++c.judged;
  c.failed += j.outcome == Outcome::regressed;
  c.inconclusive += j.outcome == Outcome::inconclusive;
  c.blind += j.blind;
  columns.effects.push_back(j.effect);
  if (j.mde > 0) columns.mdes.push_back(j.mde);
  const auto all = pair_rounds(base, head, 0, std::numeric_limits<int>::max()).log_ratios;
  if (all.size() < 2 || !(j.df > 0)) return;
  columns.sds.push_back(stddev(all));
  columns.z2s.push_back(squared_z(j));
}

}  // namespace

std::vector<Calibration> calibrate(const Comparison& result, const std::vector<double>& injected) {
  std::vector<Calibration> all(injected.size());
  std::vector<Columns> columns(injected.size());
  for (const auto& [id, j] : result.decided.judged) {
    const size_t slot = canary_slot({id.key, id.variant}, injected.size());
    add(all[slot], columns[slot], j, result.base.at(id), result.head.at(id));
    all[slot].screened += result.suspects.count(id) > 0;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    Calibration& c = all[i];
    c.injected = injected[i];
    c.rounds = result.least_rounds;
    c.effect = columns[i].effects.empty() ? 0 : mean(columns[i].effects);
    c.sd = median_or_0(columns[i].sds);
    c.lambda = median_or_0(columns[i].z2s) / median_chi_squared();
    c.mde = median_or_0(columns[i].mdes);
  }
  return all;
}

Table calibration_table(const std::vector<Calibration>& calibrations) {
  Table table;
  table.columns = {"Injected", "Rows",         "Sent on",       "Failed",
                   "Share",    "Inconclusive", "Mean estimate", "Sd of a pair",
                   "Lambda",   "Median MDE",   "Blind"};
  const auto cell = [](std::string text) { return Table::Cell{std::move(text), true}; };
  const auto share = [&](double x) { return cell(fmt::format("{:.2f} %", 100 * x)); };
  for (const Calibration& c : calibrations) {
    const double failed = c.judged > 0 ? static_cast<double>(c.failed) / c.judged : 0;
    table.rows.push_back({share(c.injected), cell(std::to_string(c.judged)),
                          cell(std::to_string(c.screened)), cell(std::to_string(c.failed)),
                          cell(fmt::format("{:.0f} %", 100 * failed)),
                          cell(std::to_string(c.inconclusive)), share(c.effect), share(c.sd),
                          cell(c.injected > 0 ? "" : fmt::format("{:.2f}", c.lambda)), share(c.mde),
                          cell(std::to_string(c.blind))});
  }
  return table;
}

Table mde_histogram(const Comparison& result) {
  constexpr double kEdges[] = {0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.50};
  constexpr size_t kBins = std::size(kEdges) + 1;
  std::vector<int> counts(kBins);
  for (const auto& [id, j] : result.decided.judged) {
    // A case whose spread is unknown sees nothing.
    const size_t bin = j.mde > 0 ? std::upper_bound(std::begin(kEdges), std::end(kEdges), j.mde) -
                                       std::begin(kEdges)
                                 : kBins - 1;
    ++counts[bin];
  }
  Table table;
  table.columns = {"Smallest slow-down seen", "Rows"};
  for (size_t i = 0; i < kBins; ++i) {
    const std::string range =
        i == 0           ? fmt::format("below {:g} %", 100 * kEdges[0])
        : i + 1 == kBins ? fmt::format("{:g} % or more", 100 * kEdges[i - 1])
                         : fmt::format("{:g} to {:g} %", 100 * kEdges[i - 1], 100 * kEdges[i]);
    table.rows.push_back({{range}, {std::to_string(counts[i]), true}});
  }
  return table;
}

std::vector<std::string> blind_cases(const Comparison& result) {
  std::vector<std::string> list;
  for (const auto& [id, j] : result.decided.judged) {
    if (!j.blind) continue;
    const std::string sees = j.mde > 0 ? fmt::format("{:.1f} %", 100 * j.mde) : "nothing";
    list.push_back(fmt::format("{} {}: sees {}", id.key, id.variant, sees));
  }
  return list;
}

void store_calibration(Store& store, int64_t head_run,
                       const std::vector<Calibration>& calibrations) {
  Transaction transaction(store.database());
  for (const Calibration& c : calibrations) {
    Statement(
        store.database(),
        "INSERT INTO calibration (run_id, injected, rounds, judged, screened, failed, effect, "
        "sd, lambda, mde, blind) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
        .bind(head_run, c.injected, c.rounds, c.judged, c.screened, c.failed, c.effect, c.sd,
              c.lambda, c.mde, c.blind)
        .run();
  }
  transaction.commit();
}

}  // namespace moegate
