// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/runner.h"

#include <algorithm>

#include "harness/base/escape.h"
#include "harness/base/interrupt.h"
#include "harness/base/notes.h"
#include "harness/campaign/time_plan.h"

namespace moegate {
namespace {

std::string how_it_ended(const Tally& tally) {
  if (!tally.interrupted) return "";
  if (tally.resume.empty()) return " (interrupted)";
  return fmt::format(" (interrupted; `{}` finishes it)", tally.resume);
}

void count_check(const Request& request, const Result& result, Tally& tally, Progress& progress) {
  if (request.canary.asked()) {
    ++tally.counts[result.status];  // a failure is what was asked for
  } else {
    tally.count(request.spec.key(), result, progress);
  }
  for (const Control& control : result.controls) {
    ++tally.controls[control.name][control.outcome];
  }
}

}  // namespace

std::string summary(const Tally& tally, const std::string& what) {
  std::string counts;
  for (const auto& [status, n] : tally.counts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(status));
  }
  const std::string several = tally.gpus > 1 ? fmt::format("{} x ", tally.gpus) : "";
  return fmt::format("{} on {}{}: {}{}", what, several, one_line(tally.device.name),
                     counts.empty() ? "nothing" : counts, how_it_ended(tally));
}

Tally check_suites(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;
  Prepared prepared = prepare(options, source);
  Plan plan = std::move(prepared.plan);
  if (options.worker.task == Task::controls) {
    plan = one_per_tolerance(std::move(plan), prepared.lanes.seat(0).worker());
  }
  // With little time it is not always the same ones that are left out.
  if (options.deadline.is_set()) plan.cases = in_order(plan.cases, options.order_seed, 0);
  Progress progress(plan.rows().size());
  Lanes& lanes = prepared.lanes;
  Tally tally;
  tally.device = plan.hello.device;
  tally.gpus = lanes.size();
  size_t checked = 0;
  lanes.dealer().begin(std::move(plan.cases));
  lanes.each([&](size_t lane) {
    while (const auto c = lanes.dealer().next(lane)) {
      const std::string key = c->spec.key();
      for (const std::string& variant : c->variants) {
        if (!lanes.going_on()) return;
        if (options.deadline.passed() && checked > 0) {
          tally.left_out.insert({c->spec.suite, key, variant});
          continue;
        }
        ++checked;
        progress.step(key + " " + variant);
        const Request request{c->spec, variant, canary_of(options, {key, variant})};
        unless_interrupted([&] {
          CaseData data;
          const Result result =
              lanes.seat(lane).worker().run(request, options.case_timeout_s, data);
          count_check(request, result, tally, progress);
        });
      }
    }
  });
  sort_failures(tally);
  tally.interrupted = InterruptGuard::interrupted();
  return tally;
}

Tally run_suites(const RunOptions& options, int64_t resume, WorkerSource& source) {
  const InterruptGuard guard;
  Prepared prepared = prepare(options, source);  // a bad suite must leave no new store behind
  Store store = Store::open(options.db, Store::Mode::write);
  const bool resumable = options.worker.task == Task::measure;
  Recording recording(store, std::move(prepared), resumable ? "moegate run" : "");
  recording.begin(resume);
  if (recording.whole()) return recording.tally();
  const size_t rows = recording.plan().rows().size();
  const size_t all = rows * static_cast<size_t>(options.rounds);
  const size_t left = all - std::min(all, store.done(recording.run()).size());
  const double budget_s = options.worker.sampling.budget_s;
  if (options.worker.task == Task::measure) {  // a profiler's results take as long as they take
    say("{}\n",
        time_text({.rows = rows,
                   .rounds = options.rounds,
                   .results = left,
                   .seconds_each = store.seconds_per_result(recording.tally().device, budget_s),
                   .budget_s = budget_s,
                   .case_timeout_s = options.case_timeout_s,
                   .devices = recording.tally().gpus}));
  }
  Progress progress(left);
  try {
    for (int round = 0; round < options.rounds && !InterruptGuard::interrupted(); ++round) {
      recording.round(round, std::nullopt, progress);
    }
    recording.finish(InterruptGuard::interrupted());
  } catch (const Error& e) {
    if (!resumable) throw;
    throw Error(e.code(),
                fmt::format("{}; `{}` finishes the run", e.what(), recording.tally().resume));
  }
  return recording.tally();
}

}  // namespace moegate
