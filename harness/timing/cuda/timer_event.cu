// SPDX-License-Identifier: Apache-2.0
// The fallback timer: CUDA events around the same sequence. Adds 2 us and more to short kernels and
// sees no single kernel, so series of this timer are never compared with CUPTI's.
#include <cuda_runtime.h>

#include <vector>

#include "harness/device/cuda/cuda_sequence.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/activity.h"
#include "harness/timing/cuda/cuda_event.h"
#include "harness/timing/timer.h"

namespace moegate {
namespace {

constexpr double kDocumentedTickNs = 500;  // of cudaEventElapsedTime; an H200 has 32

struct Interval {
  CudaEvent start, end;
  double ns() const { return 1e6 * end.ms_since(start); }
};

class EventSession final : public Session {
 public:
  EventSession(Device& device, const Subject& subject, const Subject*, const Conditions& conditions)
      : stream_(static_cast<cudaStream_t>(device.stream())),
        sequence_(device, subject, conditions) {}

  void enqueue() override {
    if (sets_.size() == intervals_.size()) intervals_.emplace_back();
    Interval& interval = intervals_[sets_.size()];
    sets_.push_back(sequence_.next_set());
    sequence_.prepare();
    interval.start.record(stream_);
    sequence_.launch();
    interval.end.record(stream_);
    sequence_.look();
    sequence_.release();
  }

  std::string misdeed() const override { return sequence_.misdeed(); }

  std::vector<Sample> collect() override {
    const std::vector<SampleReading> readings = sequence_.readings();  // waits for the device
    std::vector<Sample> samples(sets_.size());
    for (size_t i = 0; i < sets_.size(); ++i) {
      Sample& s = samples[i];
      s.span_ns = intervals_[i].ns();
      s.busy_ns = s.sum_ns = s.span_ns;
      s.sm_mhz = sm_mhz(readings.at(i));
      s.set = sets_[i];
      s.outputs = readings.at(i).outputs;
      if (!(s.span_ns > 0)) s.flags |= kBadTimestamp;
    }
    clock_.flag(samples);
    sets_.clear();
    return samples;
  }

 private:
  cudaStream_t stream_;
  CudaSequence sequence_;
  std::vector<Interval> intervals_;  // reused from batch to batch
  std::vector<size_t> sets_;         // problem set of every pending sample
  ClockWatch clock_;
};

/// The tick that times of a few empty kernels are multiples of.
double event_tick_ns(cudaStream_t stream) {
  constexpr int kIntervals = 64, kMostKernels = 8;
  std::vector<Interval> intervals(kIntervals);
  for (int i = 0; i < kIntervals; ++i) {
    intervals[i].start.record(stream);
    for (int k = 0; k <= i % kMostKernels; ++k) launch_empty_kernel(stream);
    intervals[i].end.record(stream);
  }
  MOEGATE_CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<double> times_ns;
  for (const Interval& interval : intervals) times_ns.push_back(interval.ns());
  const double tick = measured_tick(times_ns);
  return tick > 0 ? tick : kDocumentedTickNs;
}

}  // namespace

std::unique_ptr<Timer> make_event_timer(Device& device) {
  const double tick_ns = event_tick_ns(static_cast<cudaStream_t>(device.stream()));
  return std::make_unique<TimerOf<EventSession>>(device, "event", tick_ns);
}

}  // namespace moegate
