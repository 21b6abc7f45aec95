// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/device/cannot_capture.h"
#include "harness/device/scribble.h"
#include "harness/kernel/object_code.h"
#include "harness/worker/nvtx.h"
#include "harness/worker/process_state.h"
#include "harness/worker/summary.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

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

std::vector<Sample> take(Session& session, int count) {
  for (int i = 0; i < count; ++i) session.enqueue();
  return session.collect();
}

/// Runs the sampled sequence itself until the clock has settled between two batches.
void warm_up(Session& session, double least_s, double most_s) {
  constexpr int kLaunches = 50;
  const auto start = Clock::now();
  double last = -1;
  for (;;) {
    const double mhz = median_clock(take(session, kLaunches));
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
  const StoppingRule rule(sampling, device_.facts().backend);
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
  sample_until_precise(measured, *session, rule, start, watch, result);
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
    return take(session, 2 * static_cast<int>(subject.sets.size()));
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

void Bench::sample_until_precise(const Subject& subject, Session& session, const StoppingRule& rule,
                                 Clock::time_point start, LaunchWatch& watch, Result& result) {
  constexpr int kAwake = 5;  // launches after a comparison, in which a GPU may have fallen asleep
  // Every problem is launched on in every batch: one that is not would still be poisoned after it.
  const int least = 2 * static_cast<int>(subject.sets.size());
  double check_s = 0, sample_s = 0;
  std::vector<Sample> samples;
  for (;;) {
    const auto taken = [&] { return static_cast<int>(samples.size()); };
    const double random = std::uniform_real_distribution(0.0, 1.0)(random_);
    const auto batch_began = Clock::now();
    for (Problem* set : subject.sets) set->poison();
    device_.synchronize();
    const auto batch = take(session, rule.next_batch(taken(), least, sample_s, random));
    sample_s = seconds_since(batch_began) / static_cast<double>(batch.size());
    watch.add(batch);
    samples.insert(samples.end(), batch.begin(), batch.end());
    const bool spent = rule.is_spent(taken(), seconds_since(start));
    if (spent || rule.are_enough(taken(), spent)) {
      summarise(samples, result);
      if (rule.are_enough(result.samples, spent) && rule.is_precise(result)) return;
    }
    if (spent) {
      result.status = Status::noisy;
      result.why = rule.why_noisy(result);
      return;
    }
    // Behind the last batch all problems are compared.
    if (check_s > kMostCheckShare * seconds_since(start)) continue;
    const auto check_began = Clock::now();
    const size_t last = subject.sets.size() - 1;
    check_again(std::uniform_int_distribution<size_t>(0, last)(random_), *subject.variant, result);
    if (result.status == Status::wrong) return;
    check_s += seconds_since(check_began);
    take(session, kAwake);
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
