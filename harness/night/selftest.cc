// SPDX-License-Identifier: Apache-2.0
#include "harness/night/selftest.h"

#include <fmt/format.h>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>

#include "harness/base/hash.h"
#include "harness/base/stats.h"
#include "harness/base/subprocess.h"
#include "harness/campaign/recording.h"
#include "harness/campaign/runner.h"

namespace moegate {
namespace {

Plan with_saboteurs(Plan plan) {
  std::erase_if(plan.cases, [&](const PlannedCase& c) {
    return std::ranges::none_of(plan.hello.variants, [&](const VariantDescription& v) {
      return v.op == c.spec.op && v.expected.status != Status::ok;
    });
  });
  if (plan.cases.empty()) {
    usage_error(
        "selftest: none of the selected variants is a saboteur; they are in the program "
        "moegate_saboteurs, and their suite is tests/saboteurs/saboteurs.suite");
  }
  return plan;
}

int exit_of(const Result& result) {
  Tally tally;
  tally.counts[result.status] = 1;
  return static_cast<int>(tally.exit());
}

// Far enough beyond what a case fails from that noise is no excuse.
constexpr double kSlowCuda = 0.05, kSlowHost = 1.0;
constexpr double kScale = 1.05;

/// In an order in which any beginning has rows of many cases.
std::vector<RowName> some_of_each(const Plan& plan) {
  std::vector<RowName> rows = plan.rows();
  const auto place = [](const RowName& row) {
    const std::string text = row.second + " " + row.first;
    return hash_bytes(text.data(), text.size());
  };
  std::ranges::stable_sort(rows, {}, place);
  return rows;
}

void fly_slow(Store& store, const SelftestOptions& options, WorkerSource& source,
              Canaries& canaries) {
  canaries.host = options.backend == Backend::host;
  canaries.slow_by = canaries.host ? kSlowHost : kSlowCuda;
  AbOptions ab = self_against_self(options.run, {canaries.slow_by});
  ab.plan = {0, 6, 0};  // all of them are suspects
  ab.seconds_per_row = options.seconds_per_row;
  PreparedAb prepared = prepare_ab(ab, source);
  prepared.options.suspects = some_of_each(prepared.head.plan);
  canaries.rows = prepared.options.suspects->size();
  const Comparison result = measure_self(store, std::move(prepared), options);
  canaries.slow = calibrate(result, {canaries.slow_by})[0];
  store_calibration(store, result.head_run, {canaries.slow});
  for (const auto& [id, j] : result.decided.judged) {
    canaries.seeing += j.mde > 0 && j.mde <= canaries.slow_by;
  }
}

void fly_scaled(RunOptions run, WorkerSource& source, Canaries& canaries) {
  run.worker.task = Task::verify;
  run.canary_scale = canaries.scale = kScale;
  const Tally tally = check_suites(run, source);
  if (tally.interrupted)
    give_up(Exit::interrupted, "interrupted; what was measured is in {}", run.db);
  for (const auto& [status, n] : tally.counts) {
    canaries.scaled_rows += status == Status::unsupported ? 0 : n;
    canaries.wrong += status == Status::wrong ? n : 0;
  }
}

/// Squared normal deviate of "no difference".
double squared_z(const Judgement& j) {
  const boost::math::students_t t(j.df);
  const double p =
      2 * boost::math::cdf(boost::math::complement(t, std::abs(std::log1p(j.effect)) / j.se));
  const boost::math::chi_squared chi2(1);
  return boost::math::quantile(boost::math::complement(chi2, std::max(p, 1e-300)));
}

double median_or_0(const std::vector<double>& values) {
  return values.empty() ? 0 : median(values);
}

Calibration calibration_of(const Comparison& result, const std::vector<double>& injected,
                           size_t slot) {
  Calibration c{.injected = injected[slot], .rounds = result.least_rounds};
  std::vector<double> effects, sds, z2s, mdes;
  for (const auto& [id, j] : result.decided.judged) {
    if (canary_slot({id.key, id.variant}, injected.size()) != slot) continue;
    ++c.judged;
    c.screened += result.suspects.contains(id);
    c.failed += j.outcome == Outcome::regressed;
    c.inconclusive += j.outcome == Outcome::inconclusive;
    c.blind += j.blind;
    effects.push_back(j.effect);
    if (j.mde > 0) mdes.push_back(j.mde);
    const auto all =
        pair_rounds(result.base.at(id), result.head.at(id), 0, std::numeric_limits<int>::max())
            .log_ratios;
    if (all.size() < 2 || !(j.df > 0)) continue;
    sds.push_back(stddev(all));
    z2s.push_back(squared_z(j));
  }
  c.effect = effects.empty() ? 0 : mean(effects);
  c.sd = median_or_0(sds);
  c.lambda = median_or_0(z2s) / boost::math::quantile(boost::math::chi_squared(1), 0.5);
  c.mde = median_or_0(mdes);
  return c;
}

}  // namespace

bool TriedSaboteur::as_expected() const {
  const ExpectedResult& expected = variant.expected;
  if (expected.status == Status::ok) return result.measured();
  return result.status == expected.status && result.why.find(expected.why) != std::string::npos;
}

std::vector<TriedSaboteur> release_saboteurs(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;
  Prepared prepared = prepare(options, source);
  const Plan plan = with_saboteurs(std::move(prepared.plan));
  std::vector<TriedSaboteur> all;
  Progress progress(plan.rows().size());
  for (const PlannedCase& c : plan.cases) {
    for (const std::string& variant : c.variants) {
      progress.step(c.spec.key() + " " + variant);
      prepared.lanes.seat(0).retire();  // what one left behind is not the next one's
      CaseData data;
      Result result =
          prepared.lanes.seat(0).worker().run({c.spec, variant, {}}, options.row_time(), data);
      if (result.status == Status::unsupported) continue;
      const auto described = std::ranges::find_if(
          plan.hello.variants,
          [&](const VariantDescription& v) { return v.op == c.spec.op && v.name == variant; });
      all.push_back({*described, std::move(result)});
    }
  }
  return all;
}

Table saboteur_table(const std::vector<TriedSaboteur>& all) {
  Table table{{"Variant", "What it does", "Called", "Exit", "Because", ""}};
  for (const TriedSaboteur& s : all) {
    const ExpectedResult& expected = s.variant.expected;
    const std::string verdict =
        s.as_expected()
            ? ""
            : fmt::format("MISSED: should be {} '{}'", name_of(expected.status), expected.why);
    table.add(s.variant.name, s.variant.help, name_of(s.result.status), exit_of(s.result),
              s.result.why, verdict);
  }
  return table;
}

AbOptions self_against_self(const RunOptions& run, const std::vector<double>& injected) {
  AbOptions ab;
  ab.run = run;
  ab.base.label = "selftest base";
  ab.head.label = "selftest head";
  ab.trust_code = false;
  if (injected.empty()) return ab;
  ab.base.canary_slow_by = {0};  // the same kernels, without the delay
  ab.head.canary_slow_by = injected;
  return ab;
}

Comparison measure_self(Store& store, PreparedAb prepared, const SelftestOptions& options) {
  Comparison result = run_ab(store, std::move(prepared), options.limits);
  if (result.decided.interrupted)
    give_up(Exit::interrupted, "interrupted; what was measured is in {}", options.run.db);
  return result;
}

bool Canaries::caught() const {
  // A busy host is no fault of the gate's, and the report of the night says that it was busy.
  const bool saw_slow = seeing > 0 ? 2 * slow.failed >= seeing : host;
  return saw_slow && wrong == scaled_rows && scaled_rows > 0;
}

std::string Canaries::text() const {
  std::string lines = fmt::format(
      "canary {}: {} of {} caught; {} quiet enough to show it\ncanary outputs x {:g}: {} of {} "
      "caught\n",
      percent(slow_by), slow.failed, count_of(slow.judged, "row"), seeing, scale, wrong,
      count_of(scaled_rows, "row"));
  if (static_cast<size_t>(slow.judged) < rows) {
    lines += fmt::format("the first canary had no time for {} of {} rows\n",
                         rows - static_cast<size_t>(slow.judged), rows);
  }
  if (!caught()) lines += "a canary was missed: this gate cannot be trusted here\n";
  return lines;
}

Canaries fly_canaries(Store& store, const SelftestOptions& options, WorkerSource& source) {
  Canaries canaries;
  RunOptions scaled = options.run;
  // Checking is quick; on a machine that is not, half of the time is the other one's.
  if (scaled.deadline.is_set())
    scaled.deadline = scaled.deadline.within(scaled.deadline.left() / 2);
  fly_scaled(scaled, source, canaries);
  fly_slow(store, options, source, canaries);
  return canaries;
}

std::vector<Calibration> calibrate(const Comparison& result, const std::vector<double>& injected) {
  std::vector<Calibration> all;
  for (size_t slot = 0; slot < injected.size(); ++slot) {
    all.push_back(calibration_of(result, injected, slot));
  }
  return all;
}

Table calibration_table(const std::vector<Calibration>& calibrations) {
  Table table{{"Injected", "Rows", "Sent on", "Failed", "Share", "Inconclusive", "Mean estimate",
               "Sd of a pair", "Lambda", "Median MDE", "Blind"}};
  const auto share = [](double x) { return Table::number("{:.2f} %", 100 * x); };
  for (const Calibration& c : calibrations) {
    const double failed = c.judged > 0 ? static_cast<double>(c.failed) / c.judged : 0;
    const Table::Cell lambda{c.injected > 0 ? "" : fmt::format("{:.2f}", c.lambda), true};
    table.add(share(c.injected), c.judged, c.screened, c.failed,
              Table::number("{:.0f} %", 100 * failed), c.inconclusive, share(c.effect), share(c.sd),
              lambda, share(c.mde), c.blind);
  }
  return table;
}

std::string lambda_text(const Calibration& aa) {
  constexpr double kHigh = 2;  // a few rows are above 1 by chance
  if (aa.injected > 0 || !(aa.lambda > 0)) return "";
  return fmt::format(
      "Lambda {:.2f}: equal sides differed {:.1f} times as much as the noise of the rounds "
      "explains. {}\n",
      aa.lambda, std::sqrt(aa.lambda),
      aa.lambda > kHigh ? "Much more than 1 makes false alarms likely; use a quieter machine."
                        : "1 is right.");
}

Table mde_histogram(const Comparison& result) {
  constexpr double kEdges[] = {0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.50};
  constexpr size_t kBins = std::size(kEdges) + 1;
  std::vector<int> counts(kBins);
  for (const auto& [id, j] : result.decided.judged) {
    // A case whose spread is unknown sees nothing.
    const size_t bin =
        j.mde > 0 ? std::ranges::upper_bound(kEdges, j.mde) - std::begin(kEdges) : kBins - 1;
    ++counts[bin];
  }
  Table table{{"Smallest slow-down seen", "Rows"}};
  for (size_t i = 0; i < kBins; ++i) {
    const std::string range =
        i == 0           ? fmt::format("below {:g} %", 100 * kEdges[0])
        : i + 1 == kBins ? fmt::format("{:g} % or more", 100 * kEdges[i - 1])
                         : fmt::format("{:g} to {:g} %", 100 * kEdges[i - 1], 100 * kEdges[i]);
    table.add(range, counts[i]);
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
    store.database().run(
        "INSERT INTO calibration (run_id, injected, rounds, judged, screened, failed, effect, "
        "sd, lambda, mde, blind) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        head_run, c.injected, c.rounds, c.judged, c.screened, c.failed, c.effect, c.sd, c.lambda,
        c.mde, c.blind);
  }
  transaction.commit();
}

}  // namespace moegate
