// SPDX-License-Identifier: Apache-2.0
// What becomes of one row of a recording: asked of a worker, doubted, stored.
#include "harness/base/subprocess.h"
#include "harness/campaign/devices.h"
#include "harness/campaign/recording.h"
#include "harness/values/roofline.h"

namespace moegate {

/// Has the process at hand run it, or a fresh one where there is none.
Result Recording::ask(const Row& row, CaseData& data) {
  Worker& worker = lanes_.seat(row.lane).worker();
  Place& place = at_[row.lane];
  if (place.process == 0 || worker.pid() != place.pid) {
    place.pid = worker.pid();
    place.process = store_.begin_process(tally_.run, row.round, place.pid);
    place.before.reset();
  }
  const RowName name{row.spec.key(), row.variant};
  Result result = worker.run({row.spec, row.variant, canary_of(options_, name)},
                             options_.row_timeout_s(), data);
  if (result.status == Status::timeout && options_.row_share_s > 0) {
    result.why += options_.share_text();
    stopped_.insert(name);
  }
  return result;
}

/// A process that dies while one row runs may die of another that ran there before (an alarm, a
/// thread, memory that it spoilt). A row that crashes in some processes looks the same, so the crash is
/// the row's own unless it is shown each time that alone the row lives and behind the other it dies.
Result Recording::ask_again(const Row& row, Result died, CaseData& data, Progress& progress) {
  constexpr int kTimes = 3;
  const Ran before = *at_[row.lane].before;
  Result alone = ask(row, data);
  for (int time = 1; time <= kTimes; ++time) {
    if (InterruptGuard::interrupted()) return alone;
    if (time > 1 && dies(row.lane, {{row.spec, row.variant, {}}})) return died;
    if (alone.status == Status::crashed) return alone;
    if (dies(row.lane, {{before.spec, before.variant, {}}, {row.spec, row.variant, {}}})) continue;
    tally_.notes.push_back(fmt::format(
        "{} {} crashed in one process and not in another, alone and after {} {}: the crash is its "
        "own.",
        row.spec.key(), row.variant, before.spec.key(), before.variant));
    progress.note(tally_.notes.back());
    return died;
  }
  blame(before,
        fmt::format("its process died after it, while {} {} ran, which alone does not ({} times of "
                    "{}): {}",
                    row.spec.key(), row.variant, kTimes, kTimes, died.why),
        progress);
  return alone;
}

/// Whether a fresh process dies of these, one after the other.
bool Recording::dies(size_t lane, const std::vector<Request>& requests) {
  WorkerSeat& seat = lanes_.seat(lane);
  seat.retire();
  CaseData data;
  bool dies = false;
  for (const Request& request : requests) {
    if (dies) break;
    dies = seat.worker().run(request, options_.row_timeout_s(), data).status == Status::crashed;
  }
  seat.retire();
  return dies;
}

void Recording::blame(const Ran& before, const std::string& why, Progress& progress) {
  store_.mark_crashed(before.process, before.spec.key(), before.variant, why);
  if (--tally_.counts[before.status] == 0) tally_.counts.erase(before.status);
  Result result;
  result.variant = before.variant;
  result.status = Status::crashed;
  result.why = why;
  tally_.count(before.spec.key(), result, progress);
}

void Recording::one(const Row& row, Progress& progress) {
  const double start = options_.deadline.now();
  CaseData data;
  Place& place = at_[row.lane];
  Result result = ask(row, data);
  if (result.status == Status::crashed && place.before) {
    result = ask_again(row, std::move(result), data, progress);
  }
  const bool cold = result.measured() && cache_of(row.spec) == Cache::cold;
  result.impossible =
      cold && !result.timer.empty() &&
      is_impossible(result.span_ns, data.cost, ceilings_, tally_.device.cache_bytes);
  result.suspect_warm = cold && came_from_cache(result, data.cost);
  store(row, data, result);
  lanes_.dealer().settle(row.spec.key(), row.lane);
  done_.insert({row.round, row.spec.key(), row.variant});
  tally_.count(row.spec.key(), result, progress);
  place.before = Ran{row.spec, row.variant, place.process, result.judged_status()};
  note_cache_pair(row.spec, result, data);
  seconds_ += options_.deadline.now() - start;
  tally_.seconds_per_row = seconds_ / ++rows_ / static_cast<double>(lanes_.dealer().left());
}

/// What a worker answers may be nothing that a store takes: a NaN, an output twice. It costs its row.
void Recording::store(const Row& row, const CaseData& data, Result& result) {
  const int64_t process = at_[row.lane].process;
  say_which_gpu(row.lane, result);
  try {
    store_.add_result(process, row.spec, data.cost, data.facts, result);
  } catch (const SqlError& e) {
    if (!e.is_about_sql()) throw;
    Result nonsense;
    nonsense.variant = result.variant;
    nonsense.status = Status::crashed;
    nonsense.why = fmt::format("answered with nonsense: {}", e.what());
    result = std::move(nonsense);
    say_which_gpu(row.lane, result);
    store_.add_result(process, row.spec, {}, {}, result);
  }
}

/// Where it could be one of several. A worker has no say in it.
void Recording::say_which_gpu(size_t lane, Result& result) {
  if (!lanes_.several()) return;
  std::erase_if(result.metrics, [](const Metric& metric) { return metric.name == kGpuMetric; });
  const int gpu = gpu_number(lanes_.seat(lane).device());
  result.metrics.push_back({.name = kGpuMetric, .unit = "", .value = static_cast<double>(gpu)});
}

/// Remembers spans of the same case cold and warm, and marks pairs that are suspiciously alike.
void Recording::note_cache_pair(const Case& c, const Result& result, const CaseData& data) {
  if (!result.measured() || cache_of(c) == Cache::cold_weights) return;
  Case cold = c;
  cold.params["cache"] = "cold";
  auto& [cold_ns, warm_ns] = cache_pairs_[{cold.key(), result.variant}];
  (cache_of(c) == Cache::cold ? cold_ns : warm_ns) = result.span_ns;
  const bool both = cold_ns > 0 && warm_ns > 0;
  if (both && looks_warm(cold_ns, warm_ns, data.cost, tally_.device.cache_bytes)) {
    store_.mark_suspect_warm(tally_.run, cold.key(), result.variant);
  }
}

}  // namespace moegate
