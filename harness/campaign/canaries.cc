// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/canaries.h"

#include <fmt/format.h>

#include "harness/campaign/runner.h"

namespace moegate {
namespace {

// Far enough beyond what a case fails from that noise is no excuse.
constexpr double kSlowCuda = 0.05, kSlowHost = 1.0;
constexpr double kScale = 1.05;

void fly_slow(Store& store, const SelftestOptions& options, WorkerSource& source,
              Canaries& canaries) {
  canaries.host = options.backend == Backend::host;
  canaries.slow_by = canaries.host ? kSlowHost : kSlowCuda;
  AbOptions ab = self_against_self(options.run, {canaries.slow_by});
  ab.plan = {2, 6, 0};
  const Comparison result = measure_self(store, ab, options, source);
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

Comparison measure_self(Store& store, const AbOptions& ab, const SelftestOptions& options,
                        WorkerSource& source) {
  Comparison result = run_ab(store, prepare_ab(ab, source), options.limits);
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
  if (!caught()) lines += "a canary was missed: this gate cannot be trusted here\n";
  return lines;
}

Canaries fly_canaries(Store& store, const SelftestOptions& options, WorkerSource& source) {
  Canaries canaries;
  fly_slow(store, options, source, canaries);
  fly_scaled(options.run, source, canaries);
  return canaries;
}

}  // namespace moegate
