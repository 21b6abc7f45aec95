// SPDX-License-Identifier: Apache-2.0
#include "harness/night/canaries.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/hash.h"
#include "harness/campaign/runner.h"

namespace moegate {
namespace {

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
  if (tally.interrupted) throw Error(Exit::interrupted, "interrupted; what was measured is kept");
  for (const auto& [status, n] : tally.counts) {
    canaries.scaled_rows += status == Status::unsupported ? 0 : n;
    canaries.wrong += status == Status::wrong ? n : 0;
  }
}

/// Whether the gate saw it wherever the machine let it look.
bool caught_slow(const Canaries& c) {
  // A busy host is no fault of the gate's, and the report of the night says that it was busy.
  if (c.host && c.seeing == 0) return true;
  return c.seeing > 0 && 2 * c.slow.failed >= c.seeing;
}

}  // namespace

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
  if (result.interrupted) throw Error(Exit::interrupted, "interrupted; what was measured is kept");
  return result;
}

bool Canaries::caught() const {
  return caught_slow(*this) && wrong == scaled_rows && scaled_rows > 0;
}

std::string Canaries::text() const {
  std::string lines = fmt::format(
      "canary {}: {} of {} rows caught, {} could be expected to see it\n"
      "canary outputs x {:g}: {} of {} rows caught\n",
      percent(slow_by), slow.failed, slow.judged, seeing, scale, wrong, scaled_rows);
  if (static_cast<size_t>(slow.judged) < rows) {
    lines += fmt::format("there was no time for {} of {} rows of the first\n",
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

}  // namespace moegate
