// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/measure.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/device/cannot_capture.h"
#include "harness/device/scribble.h"
#include "harness/kernel/object_code.h"
#include "harness/worker/interference.h"
#include "harness/worker/nvtx.h"
#include "harness/worker/summary.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

// Samples between two looks at the clock and the budget: at random, so that no launch can know
// that it is the last before the outputs are compared.
constexpr int kLeastBatch = 75, kMostBatch = 125;
constexpr double kMostCheckShare = 0.05;  // of the time, spent on comparing outputs between batches
constexpr double kMaxInterference = 0.05;  // host: more and the ratio itself is not to be trusted
constexpr double kComputeBound = 100;      // flops per byte from which clocks need long to settle

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Without the sets that these conditions leave out.
Subject under(const Conditions& conditions, Subject subject) {
  // Several sets would take each other's place in the cache.
  const size_t most = conditions.cache == Cache::warm ? 1
                      : conditions.sets > 0           ? static_cast<size_t>(conditions.sets)
                                                      : subject.sets.size();
  if (subject.sets.size() > most) subject.sets.resize(most);
  return subject;
}

/// Swallows Google Benchmark's own report; the samples themselves are what we keep.
class QuietReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) error = run.error_message;
    }
  }
  std::string error;
};

/// Takes `count` samples with Google Benchmark driving the loop: it calls enqueue once per
/// iteration, and gets each sample's span as that iteration's manual time once the batch is
/// drained.
std::vector<Sample> sample_batch(Session& session, int count) {
  std::vector<Sample> samples;
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark("sample",
                               [&](benchmark::State& state) {
                                 for ([[maybe_unused]] auto _ : state) session.enqueue();
                                 samples = session.collect();
                                 for (const Sample& s : samples)
                                   state.SetIterationTime(s.span_ns * 1e-9);
                               })
      ->UseManualTime()
      ->Iterations(count);
  QuietReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, "sample");
  benchmark::ClearRegisteredBenchmarks();
  if (!reporter.error.empty()) throw Error(Exit::internal, reporter.error);
  return samples;
}

/// Runs the sampled sequence itself until the clock has settled between two batches.
void warm_up(Session& session, double least_s, double most_s) {
  constexpr int kLaunches = 50;
  const auto start = Clock::now();
  double last = -1;
  for (;;) {
    for (int i = 0; i < kLaunches; ++i) session.enqueue();
    const double mhz = median_clock(session.collect());
    const bool settled = last >= 0 && std::abs(mhz - last) <= 0.005 * last;
    if (seconds_since(start) > most_s || (settled && seconds_since(start) >= least_s)) return;
    last = mhz;
  }
}

/// Does what captures a launch; false where it has none to capture, which the result says.
template <class Capture>
bool can_be_captured(const Capture& capture, Result& result) {
  try {
    capture();
    return true;
  } catch (const CannotCapture& e) {
    result.status = Status::unsupported;
    result.why = e.what();
  } catch (const EmptyCapture& e) {
    reject(e.what(), {}, result);
  }
  return false;
}

}  // namespace

void Bench::try_capture(const Variant& variant, Result& result) {
  can_be_captured([&] { device_.try_capture(variant, *sets_.front()); }, result);
}

void Bench::sample(const Variant& variant, Timer& timer, const Conditions& conditions,
                   const Sampling& sampling, Result& result) {
  const auto start = Clock::now();
  const Interference interference;
  const ProcessState before;
  result.timer = timer.name();
  result.tick_ns = timer.tick_ns();
  const Subject measured = under(conditions, subject(variant, sets_));
  const Subject paired = yardstick();
  std::unique_ptr<Session> session;
  const auto open = [&] {
    session = timer.open(measured, paired.variant ? &paired : nullptr, conditions);
  };
  if (!can_be_captured(open, result)) return;
  const Cost work = cost();
  const bool compute_bound = work.flops > kComputeBound * (work.read_bytes + work.write_bytes);
  warm_up(*session, compute_bound ? 0.3 : 0,
          std::max(0.2 * sampling.budget_s, compute_bound ? 0.6 : 0));
  LaunchWatch watch = watch_launches(measured, *session);
  sample_until_precise(measured, *session, sampling, start, watch, result);
  if (result.status != Status::wrong && !watch.fault().empty()) {
    const std::string fault = odd_fault(measured, *session, watch);
    if (!fault.empty()) reject(fault, {}, result);
  }
  if (result.status != Status::wrong) {
    describe(*session, paired, result);
    result.metrics.push_back({.name = "launches_compared",
                              .unit = "launches",
                              .value = static_cast<double>(watch.compared())});
    result.metrics.push_back({.name = "problem_sets",
                              .unit = "sets",
                              .value = static_cast<double>(measured.sets.size())});
    doubt(interference, result);
    check_again(measured, result);
  }
  constexpr size_t kOwn = size_t{1} << 19;  // spans and samples are the harness's own
  // Asked of a wrong one, too: the next variant finds the process as it was. Of what is wrong with the launches
  // the process tells least: threads that write too late may be there still, or not.
  const std::string left = misdeed(variant, before, kOwn), done = session->misdeed();
  if (const std::string& fault = done.empty() ? left : done; !fault.empty()) {
    reject(fault, {}, result);
  }
  if (result.measured()) try_unseen(variant, timer, conditions, result);
  if (result.status != Status::wrong) {  // at the end: a launch may load what it runs
    result.code = session->code();
    if (paired.variant) result.yardstick_code = host_code(*paired.variant);
  }
  result.wall_s = seconds_since(start);
}

void Bench::describe(const Session& session, const Subject& paired, Result& result) {
  result.judged = session.judged();
  result.kernels = session.kernels();
  if (session.enqueue_ns() > 0) {
    result.metrics.push_back({.name = "enqueue", .unit = "ns", .value = session.enqueue_ns()});
  }
  if (!paired.variant) return;
  result.yardstick = paired.variant->name;
}

LaunchWatch Bench::watch_launches(const Subject& subject, Session& session) {
  const auto behind = [&](uint8_t byte) {
    for (Problem* set : subject.sets) set->poison(byte);
    device_.synchronize();
    for (size_t i = 0; i < 2 * subject.sets.size(); ++i) session.enqueue();
    return session.collect();
  };
  LaunchWatch watch;
  const std::vector<Sample> one = behind(Tensor::kPoisonByte);
  watch.learn(one, behind(kOtherPoisonByte));
  return watch;
}

std::string Bench::odd_fault(const Subject& subject, Session& session, const LaunchWatch& watch) {
  constexpr int kMostLaunches = 400, kEnough = 3;
  int right = 0;
  for (int i = 0; i < kMostLaunches && right < kEnough; ++i) {
    session.enqueue();
    const Sample sample = session.collect().back();
    if (!watch.is_odd(sample)) continue;
    const Checked checked = subject.sets[sample.set]->check_with(subject.variant->leeway);
    const auto bad = std::ranges::find(checked.accuracy, false, &Accuracy::ok);
    if (bad != checked.accuracy.end()) return watch.fault() + ": " + bad->why;
    ++right;
  }
  return right > 0 ? "" : watch.fault() + ", and did not do so again";
}

int enough_samples(const Sampling& sampling, bool spent) {
  constexpr int kFewest = 50;  // whose interval is to be trusted
  return spent ? std::min(sampling.min_samples, kFewest) : sampling.min_samples;
}

void Bench::sample_until_precise(const Subject& subject, Session& session, const Sampling& sampling,
                                 Clock::time_point start, LaunchWatch& watch, Result& result) {
  const bool host = device_.facts().backend == Backend::host;
  const double wanted = sampling.precision > 0 ? sampling.precision : host ? 0.02 : 0.005;
  constexpr int kAwake = 5;  // launches after a comparison, in which a GPU may have fallen asleep
  double check_s = 0;
  std::vector<Sample> samples;
  for (;;) {
    // Every problem is launched on in every batch: one that is not would still be poisoned after it.
    const int every = 2 * static_cast<int>(subject.sets.size());
    const int left = std::max(every, sampling.max_samples - static_cast<int>(samples.size()));
    const int some = std::uniform_int_distribution(kLeastBatch, kMostBatch)(random_);
    for (Problem* set : subject.sets) set->poison();
    device_.synchronize();
    const auto batch = sample_batch(session, std::min(left, some));
    watch.add(batch);
    samples.insert(samples.end(), batch.begin(), batch.end());
    summarise(samples, result);
    const double reached = uncertainty(result);
    const bool spent = static_cast<int>(samples.size()) >= sampling.max_samples ||
                       seconds_since(start) > sampling.budget_s;
    const int enough = enough_samples(sampling, spent);
    if (result.samples >= enough && reached <= wanted) return;
    if (spent) {
      result.status = Status::noisy;
      result.why = fmt::format(
          "95 % interval of the {} is ± {:.2f} % after {} samples (wanted: ± {:.2f} % after "
          "{})",
          result.ratio > 0 ? "median ratio" : "trimmed mean", 100 * reached, result.samples,
          100 * wanted, enough);
      return;
    }
    // Behind the last batch all problems are compared.
    if (check_s > kMostCheckShare * seconds_since(start)) continue;
    const auto began = Clock::now();
    const size_t last = subject.sets.size() - 1;
    check_again(std::uniform_int_distribution<size_t>(0, last)(random_), *subject.variant, result);
    if (result.status == Status::wrong) return;
    check_s += seconds_since(began);
    for (int i = 0; i < kAwake; ++i) session.enqueue();
    session.collect();
  }
}

void Bench::doubt(const Interference& interference, Result& result) const {
  const bool host = device_.facts().backend == Backend::host;
  judge_samples(host, result);
  if (!host || !result.measured()) return;
  // A variant's few milliseconds may fall between two time slices of the other load; the whole
  // process's life does not.
  static const Interference since_first_case;
  const double disturbed = std::max(interference.share(), since_first_case.share());
  result.metrics.push_back({.name = "core_wait", .unit = "share", .value = disturbed});
  if (disturbed <= kMaxInterference) return;
  result.status = Status::noisy;
  result.why = fmt::format("the machine was busy: threads had no core for {:.0f} % of their time",
                           100 * disturbed);
}

void Bench::profile(const Variant& variant) {
  constexpr int kLaunches = 3;
  const std::string name = case_.key() + " " + variant.name;
  const Launch launch{device_.stream(), device_.facts()};
  const Subject profiled = subject(variant, sets_);
  const NvtxRange all(kLaunchesRange);
  const NvtxRange range(name);
  for (int i = 0; i < kLaunches; ++i) {
    variant.launch(*profiled.sets[static_cast<size_t>(i) % profiled.sets.size()], launch);
    device_.synchronize();
  }
}

void Bench::profile(const Variant& variant, Profiler& profiler, const Conditions& conditions,
                    Result& result) {
  const auto start = Clock::now();
  const auto profile = [&] {
    profiler.profile(under(conditions, subject(variant, sets_)), conditions, result);
  };
  can_be_captured(profile, result);
  result.wall_s = seconds_since(start);
}

}  // namespace moegate
