// SPDX-License-Identifier: Apache-2.0
// Energy of a launch, by the GPU's own counter (timing/energy.h says how). Launches go on back to back:
// a cold one behind its flush, as it is timed, a warm one behind the launch before it. What the host
// cannot enqueue fast enough waits on the GPU, and the energy of that wait is the launch's.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "harness/base/error.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/nvml.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/energy.h"
#include "harness/timing/profiler.h"

namespace moegate {
namespace {

using EnergyClock = std::chrono::steady_clock;

constexpr double kSettleS = 0.4;  // the counter's sensor follows a change of load late
constexpr double kLeastS = 1.2;   // of readings behind that
constexpr double kMostS = 8;      // of a batch whose counter hardly moves
constexpr double kWarmUpS = 0.5;
constexpr double kBlockS = 1e-3;  // of work between two looks at the counter
constexpr size_t kAhead = 4;      // blocks on the GPU: it never waits for a look at the counter
constexpr int kLook = 16;         // launches that the first guess of a period takes
constexpr std::chrono::microseconds kPoll{300};

/// What one block ends with.
class BlockEnd {
 public:
  BlockEnd() { MOEGATE_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~BlockEnd() { cudaEventDestroy(event_); }
  BlockEnd(const BlockEnd&) = delete;
  BlockEnd& operator=(const BlockEnd&) = delete;

  void record(cudaStream_t stream) { MOEGATE_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  bool reached() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // else the next launch would be told of it
      return false;
    }
    MOEGATE_CUDA_CHECK(status);
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// What a batch does over and over.
enum class Doing { launch, flush, both };

class EnergyLoad {
 public:
  EnergyLoad(Device& device, const Subject& subject, const Conditions& conditions,
             const EnergyCounter& counter)
      : device_(device), counter_(counter), sequence_(device, subject, conditions) {}

  /// Goes on for at least `least_s` behind the time that the counter takes to settle, and until the
  /// counter has moved often enough.
  EnergyBatch run(Doing doing, double least_s) {
    const int block = std::clamp(static_cast<int>(kBlockS / guess(doing)), 1, kMostInBlock);
    std::vector<EnergyReading> readings;
    EnergyBatch batch;
    const auto start = EnergyClock::now();
    for (size_t i = 0;; ++i) {
      BlockEnd& end = ends_[i % kAhead];
      if (i >= kAhead) poll_until(end, start, readings);
      const double now_s = seconds_since(start);
      if (now_s > kMostS || (now_s > kSettleS + least_s && power_of(readings, kSettleS))) break;
      enqueue(doing, block);
      end.record(static_cast<cudaStream_t>(device_.stream()));
      batch.times += block;
    }
    finish();
    batch.seconds = seconds_since(start);
    const auto power = power_of(readings, kSettleS);
    if (!power) {
      throw Error(Exit::environment,
                  fmt::format("energy: the GPU's counter moved less than three times in {:.0f} s",
                              kMostS - kSettleS));
    }
    batch.power = *power;
    return batch;
  }

 private:
  static constexpr int kMostInBlock = CudaSequence::kMostPending / kAhead;

  static double seconds_since(EnergyClock::time_point start) {
    return std::chrono::duration<double>(EnergyClock::now() - start).count();
  }

  void finish() {
    sequence_.readings();  // waits
    pending_ = 0;
  }

  void enqueue(Doing doing, int times) {
    const bool flushes = doing != Doing::launch, launches = doing != Doing::flush;
    constexpr int kMost = CudaSequence::kMostPending;
    if (flushes && pending_ + times > kMost) finish();
    for (int i = 0; i < times; ++i) {
      if (flushes) sequence_.prepare();
      if (launches) sequence_.launch();
      if (flushes) sequence_.release();
    }
    if (flushes) pending_ += times;
  }

  /// Seconds of one of them.
  double guess(Doing doing) {
    enqueue(doing, kLook);
    finish();
    const auto start = EnergyClock::now();
    enqueue(doing, kLook);
    finish();
    return seconds_since(start) / kLook;
  }

  /// Looks at the counter at least once.
  void poll_until(const BlockEnd& end, EnergyClock::time_point start,
                  std::vector<EnergyReading>& readings) {
    for (;;) {
      const double before_s = seconds_since(start);
      const std::optional<double> mj = counter_.millijoules();
      const double after_s = seconds_since(start);
      if (!mj) throw Error(Exit::environment, "energy: NVML no longer reads the GPU's counter");
      readings.push_back({(before_s + after_s) / 2, *mj});
      if (end.reached()) return;
      std::this_thread::sleep_for(kPoll);
    }
  }

  Device& device_;
  const EnergyCounter& counter_;
  CudaSequence sequence_;
  std::array<BlockEnd, kAhead> ends_;
  int pending_ = 0;  // of the sequence's samples
};

class EnergyProfiler final : public Profiler {
 public:
  explicit EnergyProfiler(Device& device) : device_(device), counter_(device.facts().uuid) {
    if (counter_.why_none().empty()) return;
    throw Error(Exit::environment,
                fmt::format("energy cannot be read: {}; it needs NVML and a whole GPU of Volta or "
                            "later, no part of one (MIG, vGPU)",
                            counter_.why_none()));
  }

  void profile(const Subject& subject, const Conditions& conditions, Result& result) override {
    EnergyLoad load(device_, subject, conditions, counter_);
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
    const std::vector<Metric> metrics = energy_metrics(pairs);
    result.metrics.insert(result.metrics.end(), metrics.begin(), metrics.end());
  }

 private:
  Device& device_;
  const EnergyCounter counter_;
};

}  // namespace

std::unique_ptr<Profiler> make_energy_profiler(Device& device, const Profiling&) {
  return std::make_unique<EnergyProfiler>(device);
}

}  // namespace moegate
