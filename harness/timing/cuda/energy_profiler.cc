// SPDX-License-Identifier: Apache-2.0
// Energy of a launch, by the GPU's own counter (timing/README.md says how). Launches go on back to
// back: a cold one behind its flush, as it is timed, a warm one behind the launch before it. A
// thread of its own reads the counter, which takes milliseconds on some machines: the GPU must not
// wait for it.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "harness/base/deadline.h"
#include "harness/base/error.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/nvml.h"
#include "harness/timing/cuda/cuda_event.h"
#include "harness/timing/energy.h"
#include "harness/timing/profiler.h"

namespace moegate {
namespace {

constexpr double kSettleS = 0.4;  // the counter's sensor follows a change of load late
constexpr double kLeastS = 1.2;   // of readings behind that
constexpr double kMostS = 8;      // of a batch whose counter hardly moves
constexpr double kWarmUpS = 0.5;
constexpr double kBlockS = 2e-3;  // of work between two looks at what the GPU has done
constexpr size_t kAhead = 8;      // blocks on the GPU: the host may be away for as long
constexpr int kBackToBack = 16;   // of one thing, queued before the first may run
constexpr std::chrono::microseconds kPoll{300};

/// Reads the counter over and over, from its making on, in a thread.
class EnergyReader {
 public:
  explicit EnergyReader(const EnergyCounter& counter)
      : counter_(counter), thread_([this](const std::stop_token& stop) { read_until(stop); }) {}

  double now_s() const { return steady_seconds() - start_; }

  std::optional<Power> power() const {
    if (failed_) throw Error(Exit::environment, "energy: NVML no longer reads the GPU's counter");
    const std::lock_guard lock(mutex_);
    return power_of(readings_, kSettleS);
  }

 private:
  void read_until(const std::stop_token& stop) {
    while (!stop.stop_requested() && !failed_) {
      const double before_s = now_s();
      const std::optional<double> mj = counter_.millijoules();
      failed_ = !mj;
      if (mj) {
        const std::lock_guard lock(mutex_);
        readings_.push_back({(before_s + now_s()) / 2, *mj});
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  const EnergyCounter& counter_;
  const double start_ = steady_seconds();
  mutable std::mutex mutex_;
  std::vector<EnergyReading> readings_;
  std::atomic<bool> failed_ = false;
  std::jthread thread_;  // the last: it uses the others
};

enum class Doing { launch, flush, both, two_flushes };

class EnergyLoad {
 public:
  EnergyLoad(Device& device, const Subject& subject, const Conditions& conditions,
             const EnergyCounter& counter)
      : device_(device), counter_(counter), sequence_(device, subject, conditions) {}

  /// Goes on for at least `least_s` behind the time that the counter takes to settle, and until the
  /// counter has moved often enough.
  EnergyBatch run(Doing doing, double least_s) {
    const int block =
        std::clamp(static_cast<int>(kBlockS / back_to_back_s(doing)), 1, kMostInBlock);
    EnergyBatch batch;
    const EnergyReader reader(counter_);
    for (size_t i = 0;; ++i) {
      CudaEvent& end = ends_[i % kAhead];
      while (i >= kAhead && !end.reached()) std::this_thread::sleep_for(kPoll);
      const double now_s = reader.now_s();
      if (now_s > kMostS || (now_s > kSettleS + least_s && reader.power())) break;
      enqueue(doing, block);
      end.record(stream());
      batch.times += block;
    }
    finish();
    batch.seconds = reader.now_s();
    batch.busy_s = back_to_back_s(doing);  // at once: the clock is that of the batch
    const auto power = reader.power();
    if (!power) {
      give_up(Exit::environment,
              "energy: the GPU's counter moved less than three times in {:.0f} s",
              kMostS - kSettleS);
    }
    batch.power = *power;
    return batch;
  }

 private:
  static constexpr int kMostInBlock = CudaSequence::kMostPending / 2 / kAhead;

  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }

  void finish() {
    sequence_.readings();  // waits
    pending_ = 0;
  }

  void enqueue_one(Doing doing) {
    if (doing != Doing::launch) sequence_.prepare();
    if (doing == Doing::two_flushes) sequence_.prepare();
    if (doing == Doing::launch || doing == Doing::both) sequence_.launch();
  }

  void enqueue(Doing doing, int times) {
    const int samples = doing == Doing::launch        ? 0
                        : doing == Doing::two_flushes ? 2 * times
                                                      : times;
    if (pending_ + samples > static_cast<int>(CudaSequence::kMostPending)) finish();
    for (int i = 0; i < times; ++i) {
      enqueue_one(doing);
      sequence_.release();
    }
    pending_ += samples;
  }

  /// GPU seconds of one of them where no host is waited for: all wait behind a sample that is not
  /// released before the last is queued. The least of a few: a host may still be interrupted.
  double back_to_back_s(Doing doing) {
    constexpr int kTries = 3;
    double least_s = kMostS;
    for (int i = 0; i < kTries; ++i) {
      sequence_.prepare();
      ends_[0].record(stream());
      for (int k = 0; k < kBackToBack; ++k) enqueue_one(doing);
      ends_[1].record(stream());
      sequence_.release();
      finish();
      least_s = std::min(least_s, 1e-3 * ends_[1].ms_since(ends_[0]) / kBackToBack);
    }
    return least_s;
  }

  Device& device_;
  const EnergyCounter& counter_;
  CudaSequence sequence_;
  std::array<CudaEvent, kAhead> ends_;
  int pending_ = 0;  // of the sequence's samples
};

class EnergyProfiler final : public Profiler {
 public:
  explicit EnergyProfiler(Device& device) : device_(device), counter_(device.facts().uuid) {
    if (counter_.why_none().empty()) return;
    give_up(Exit::environment,
            "energy cannot be read: {}; it needs NVML and a whole GPU of Volta or later, no part "
            "of one (MIG, vGPU)",
            counter_.why_none());
  }

  void profile(const Subject& subject, const Conditions& conditions, Result& result) override {
    EnergyLoad load(device_, subject, conditions, counter_);
    if (!proportion_) {
      load.run(Doing::flush, kWarmUpS);
      const EnergyBatch once = load.run(Doing::flush, kLeastS);
      proportion_ = proportion_fault(once, load.run(Doing::two_flushes, kLeastS));
    }
    const bool flushes = conditions.cache != Cache::warm;
    const Doing whole = flushes ? Doing::both : Doing::launch;
    load.run(whole, kWarmUpS);
    // Launches, flushes, flushes, launches: what drifts evenly, as the temperature does, cancels.
    std::array<EnergyPair, 2> pairs;
    pairs[0].launches = load.run(whole, kLeastS);
    if (flushes) {
      pairs[0].flushes = load.run(Doing::flush, kLeastS);
      pairs[1].flushes = load.run(Doing::flush, kLeastS);
    }
    pairs[1].launches = load.run(whole, kLeastS);
    result.why = proportion_->empty()
                     ? energy_fault(pairs, read_gpu_state(device_.facts().uuid).limit_watts)
                     : *proportion_;
    if (!result.why.empty()) {
      result.status = Status::bad_timer;
      return;
    }
    const std::vector<Metric> metrics = energy_metrics(pairs);
    result.metrics.insert(result.metrics.end(), metrics.begin(), metrics.end());
  }

 private:
  Device& device_;
  const EnergyCounter counter_;
  std::optional<std::string> proportion_;  // what is wrong with the counter; asked once
};

}  // namespace

std::unique_ptr<Profiler> make_energy_profiler(Device& device, const Profiling&) {
  return std::make_unique<EnergyProfiler>(device);
}

}  // namespace moegate
