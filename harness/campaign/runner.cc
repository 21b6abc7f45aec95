// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/runner.h"

#include <numeric>

#include "harness/base/interrupt.h"
#include "harness/kernel/tile_file.h"

namespace moegate {
namespace {

size_t total_variants(const std::vector<Planned>& planned) {
  return std::accumulate(planned.begin(), planned.end(), size_t{0},
                         [](size_t n, const Planned& p) { return n + p.variants.size(); });
}

}  // namespace

std::string summary(const Tally& tally, const std::string& what) {
  std::string counts;
  for (const auto& [status, n] : tally.counts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(status));
  }
  return fmt::format("{} on {}: {}{}", what, tally.device.name, counts.empty() ? "nothing" : counts,
                     tally.interrupted ? " (interrupted; --resume finishes it)" : "");
}

Tally check_suites(const RunOptions& options) {
  use_tile_folder(options.worker.tiles);
  const auto loaded = load_cases(options);
  const InterruptGuard guard;
  WorkerSeat seat(options.worker, loaded);
  const Hello hello = seat.worker().hello();
  Tally tally;
  tally.device = hello.device;
  const auto cases = adapt(loaded, tally.device.backend);
  auto planned = plan(options, cases, tally.device.backend, hello.variants);
  if (options.worker.task == Task::controls) {
    planned = one_variant_each(std::move(planned), cases, tally.device);
  }
  Progress progress(total_variants(planned));
  for (const Planned& p : planned) {
    for (const std::string& variant : p.variants) {
      if (InterruptGuard::interrupted()) break;
      const std::string key = cases[p.index].key();
      progress.step(key + " " + variant);
      CaseData data;
      const Canary canary = canary_of(options, {key, variant});
      const Result result =
          seat.worker().run(p.index, variant, canary, options.case_timeout_s, data);
      if (canary.asked()) {
        ++tally.counts[result.status];  // a failure is what was asked for
      } else {
        tally.count(key, result, progress);
      }
      for (const Control& c : result.controls) ++tally.controls[c.name][c.outcome];
    }
  }
  tally.interrupted = InterruptGuard::interrupted();
  return tally;
}

Tally run_suites(const RunOptions& options, int64_t resume) {
  load_cases(options);  // a bad suite must leave no new store behind
  Store store = Store::open(options.db, Store::Mode::write);
  const InterruptGuard guard;
  Recording recording(store, options, resume);
  Progress progress(recording.rows().size() * static_cast<size_t>(options.rounds));
  for (int round = 0; round < options.rounds && !InterruptGuard::interrupted(); ++round) {
    recording.round(round, nullptr, progress);
  }
  recording.finish(InterruptGuard::interrupted());
  return recording.tally();
}

}  // namespace moegate
