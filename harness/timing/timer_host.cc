// SPDX-License-Identifier: Apache-2.0
// Timing on the host: steady_clock around the launch, operands flushed from every cache level,
// threads pinned and awake. Absolute times on a shared machine drift, so each sample of a variant
// is taken next to one of the operator's yardstick variant, in alternating order.
#include <sys/resource.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/device/chill.h"
#include "harness/device/scribble.h"
#include "harness/kernel/object_code.h"
#include "harness/timing/timer.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed_ns(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

/// The processor's own count of time, which no library stands before; 0 where there is none.
uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t count = 0;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return 0;
#endif
}

/// A moment by the program's clock, and by the processor's before and after that was read: who is
/// taken off the core between two readings has stopped neither.
struct Moment {
  uint64_t before = ticks();
  Clock::time_point at = Clock::now();
  uint64_t after = ticks();
};

struct TwoClocks {
  double ns = 0, least_ticks = 0, most_ticks = 0;
  void add(const Moment& start, const Moment& end) {
    ns += elapsed_ns(start.at, end.at);
    least_ticks += static_cast<double>(end.before - start.after);
    most_ticks += static_cast<double>(end.after - start.before);
  }
};

/// Times the scheduler took a thread of this process off its core although it wanted to run.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

class HostSession : public Session {
 public:
  HostSession(Device& device, const Subject& subject, const Subject* yardstick,
              const Conditions& conditions)
      : launch_{nullptr, device.facts()},
        subject_(subject),
        conditions_(conditions),
        chiller_(device.facts().cache_bytes) {
    if (conditions.launch == LaunchMode::graph) {
      usage_error("launch = graph needs a GPU; the host launches directly");
    }
    if (yardstick && yardstick->variant != subject.variant) yardstick_ = *yardstick;
  }

  void enqueue() override {
    const size_t turn = turn_++;
    Sample sample;
    const bool yardstick_first = turn % 2 == 1;
    if (yardstick_.variant && yardstick_first) sample.yard_ns = time(yardstick_, turn, sample);
    sample.span_ns = time(subject_, turn, sample);
    if (yardstick_.variant && !yardstick_first) sample.yard_ns = time(yardstick_, turn, sample);
    if (!yardstick_.variant) sample.yard_ns = sample.span_ns;
    sample.busy_ns = sample.sum_ns = sample.span_ns;
    sample.kernels = 1;
    sample.set = set_of(subject_, turn);
    sample.outputs = written_[sample.set] = hash_of_written(*subject_.sets[sample.set]);
    samples_.push_back(sample);
  }

  std::vector<Sample> collect() override {
    for (const auto& [set, hash] : written_) late_ |= hash_of_written(*subject_.sets[set]) != hash;
    written_.clear();
    return std::exchange(samples_, {});
  }

  Judged judged() const override {
    return yardstick_.variant ? Judged::ratio : Judged::is_yardstick;
  }

  std::string code() const override { return host_code(*subject_.variant); }

  std::string misdeed() const override {
    if (late_) return "wrote to its outputs after its launch had returned";
    return stopped_clock();
  }

 private:
  /// The program's clock may be the variant's own function; the processor's is not. Between
  /// launches both tell how they run against each other.
  std::string stopped_clock() const {
    TwoClocks all;
    all.add(opened_, Moment());
    const double between_ns = all.ns - launches_.ns;
    const double least_between = all.least_ticks - launches_.most_ticks;
    const double most_between = all.most_ticks - launches_.least_ticks;
    if (launches_.most_ticks == 0 || least_between <= 0) return {};
    // Reading the clocks is in one of them.
    constexpr double kReadingNs = 200, kShare = 0.02;
    const double by_processor_ns =
        std::clamp(launches_.ns, launches_.least_ticks * between_ns / most_between,
                   launches_.most_ticks * between_ns / least_between);
    const double allowed_ns = kShare * launches_.ns + kReadingNs * static_cast<double>(turn_);
    if (std::abs(by_processor_ns - launches_.ns) <= allowed_ns) return {};
    return fmt::format(
        "stops the clock: {:.2f} us by clock_gettime() are {:.2f} us by the processor's counter",
        launches_.ns / 1e3, by_processor_ns / 1e3);
  }

  static size_t set_of(const Subject& subject, size_t turn) {
    return turn / 2 % subject.sets.size();
  }

  double time(const Subject& subject, size_t turn, Sample& sample) {
    Problem& problem = *subject.sets[set_of(subject, turn)];
    for (const Scribble& part : scribbler_.next(problem)) scribble(part);
    if (conditions_.cache != Cache::warm) chiller_.chill(problem);
    if (conditions_.cache == Cache::cold_weights) {
      for (const Tensor* tensor : problem.tensors()) {
        if (tensor->role() == Role::activation) touch_lines(tensor->data<char>(), tensor->bytes());
      }
    }
    // An empty parallel region: workers that went to sleep are awake and spinning afterwards.
#pragma omp parallel
    { __asm__ volatile(""); }
    const long preempted = preemptions();
    const Moment start;
    subject.variant->launch(problem, launch_);
    const Moment end;
    if (preemptions() != preempted) sample.flags |= kPreempted;
    const double ns = elapsed_ns(start.at, end.at);
    if (subject.variant == subject_.variant) launches_.add(start, end);
    if (!(ns > 0)) sample.flags |= kBadTimestamp;
    return ns;
  }

  Launch launch_;
  Subject subject_;
  Subject yardstick_{nullptr, {}};
  Conditions conditions_;
  Chiller chiller_;
  Scribbler scribbler_;
  const Moment opened_;
  TwoClocks launches_;
  size_t turn_ = 0;
  std::vector<Sample> samples_;
  std::map<size_t, uint64_t> written_;  // by problem: its outputs right after its last launch
  bool late_ = false;
};

/// The smallest step the clock shows, in nanoseconds, seen over enough readings to meet it.
double clock_tick_ns() {
  double tick_ns = 1e9;
  auto last = Clock::now();
  for (int i = 0; i < 10000; ++i) {
    const auto now = Clock::now();
    if (now > last) tick_ns = std::min(tick_ns, elapsed_ns(last, now));
    last = now;
  }
  return tick_ns;
}

}  // namespace

std::unique_ptr<Timer> make_host_timer(Device& device) {
  return std::make_unique<TimerOf<HostSession>>(device, "clock", clock_tick_ns());
}

}  // namespace moegate
