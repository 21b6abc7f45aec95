// SPDX-License-Identifier: Apache-2.0
// Hardware counters through CUPTI's range profiler: reading them over launches that are repeated pass by
// pass. Knows neither samples nor variants.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/timing/cuda/counter_plan.h"

namespace moegate {

/// The counters of the current context's device. One per process, and none beside activity records.
class Counters {
 public:
  /// Throws like CounterPlan, and Error(environment) without the right to read counters, naming the
  /// remedy.
  explicit Counters(const std::vector<std::string>& metrics);
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  const CounterPlan& plan() const { return *plan_; }

  /// What is done in every pass. Nothing here waits but `wait`, for all that was enqueued.
  struct Repeated {
    std::function<void()> prepare, wait;        // not counted
    std::vector<std::function<void()>> ranges;  // counted, each for itself
  };
  /// The values of plan().metrics(), for each of the ranges. A pass first does the ranges uncounted:
  /// starting one empties the caches of instructions and constants, which warm launches would find full.
  std::vector<std::vector<double>> count(const Repeated& repeated);

 private:
  class Session;

  std::unique_ptr<CounterPlan> plan_;
  std::unique_ptr<Session> session_;
};

}  // namespace moegate
