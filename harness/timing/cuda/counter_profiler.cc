// SPDX-License-Identifier: Apache-2.0
// Task::counters: every pass makes cold, then counts one launch on the first problem set. Other
// sets have other inputs, whose counts would not belong together.
#include <functional>
#include <memory>
#include <utility>

#include "harness/device/cannot_capture.h"
#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/cuda/cupti_counters.h"
#include "harness/timing/profiler.h"

namespace moegate {
namespace {

class CounterProfiler final : public Profiler {
 public:
  CounterProfiler(Device& device, const Profiling& profiling)
      : device_(device),
        per_kernel_(profiling.per_kernel),
        counters_(profiling.metrics.empty() ? default_counters() : profiling.metrics) {}

  void profile(const Subject& subject, const Conditions& conditions, Result& result) override {
    const Subject one{subject.variant, {subject.sets.at(0)}};
    CudaSequence sequence(device_, one, conditions);
    const auto launch = capture(one);
    if (launch) result.kernels = launch->operations();
    add(count(sequence, {[&] { sequence.launch(); }})[0], Metric::kWholeLaunch, result);
    result.metrics.push_back({.name = "counter_passes",
                              .unit = "launches",
                              .value = static_cast<double>(counters_.plan().passes())});
    if (per_kernel_ && launch) count_kernels(*launch, sequence, result);
  }

 private:
  std::vector<std::vector<double>> count(CudaSequence& sequence,
                                         std::vector<std::function<void()>> ranges) {
    return counters_.count({.prepare =
                                [&] {
                                  sequence.prepare();
                                  sequence.release();
                                },
                            .wait = [&] { sequence.readings(); },
                            .ranges = std::move(ranges)});
  }

  void count_kernels(const CapturedLaunch& launch, CudaSequence& sequence, Result& result) {
    const auto parts = launch.parts();
    const auto stream = static_cast<cudaStream_t>(device_.stream());
    std::vector<std::function<void()>> ranges;
    for (const auto& part : parts) {
      ranges.emplace_back(
          [&part, stream] { MOEGATE_CUDA_CHECK(cudaGraphLaunch(part.get(), stream)); });
    }
    const auto values = count(sequence, std::move(ranges));
    for (size_t i = 0; i < values.size(); ++i) add(values[i], static_cast<int>(i), result);
  }

  /// Nothing of a launch that fits no graph: its kernels are not known.
  std::unique_ptr<CapturedLaunch> capture(const Subject& subject) {
    try {
      const Launch launch{device_.stream(), device_.facts()};
      return std::make_unique<CapturedLaunch>(*subject.variant, *subject.sets[0], launch);
    } catch (const CannotCapture&) {
      return nullptr;
    }
  }

  void add(const std::vector<double>& values, int ordinal, Result& result) {
    const CounterPlan& plan = counters_.plan();
    for (size_t i = 0; i < values.size(); ++i) {
      result.metrics.push_back({.name = plan.metrics()[i],
                                .unit = plan.units()[i],
                                .value = values[i],
                                .ordinal = ordinal});
    }
  }

  Device& device_;
  const bool per_kernel_;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Profiler> make_counter_profiler(Device& device, const Profiling& profiling) {
  return std::make_unique<CounterProfiler>(device, profiling);
}

}  // namespace moegate
