// SPDX-License-Identifier: Apache-2.0
// Hardware counters through CUPTI's range profiler: reading them over launches that are repeated
// pass by pass. Knows neither samples nor variants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moegate {

// Which metrics a chip has, how many passes they take, and their values in what was counted, by
// CUPTI's profiler host.

/// What a chip can count, as its name alone tells: no GPU is needed.
class CounterPlan {
 public:
  /// `chip` as CUPTI calls it, "GH100". `availability`: what the device at hand says it has; empty:
  /// all. Throws Error(usage) for a metric that the chip does not have, naming near ones,
  /// Error(environment) where CUPTI or libnvperf_host cannot be used.
  CounterPlan(const std::string& chip, const std::vector<std::string>& metrics,
              const std::vector<uint8_t>& availability = {});
  ~CounterPlan();
  CounterPlan(const CounterPlan&) = delete;
  CounterPlan& operator=(const CounterPlan&) = delete;

  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<std::string>& units() const { return units_; }  // "byte", "percent"
  const std::vector<uint8_t>& image() const { return image_; }
  /// How often everything has to be launched.
  size_t passes() const { return passes_; }
  /// Values of metrics() in a range of a counter data image.
  std::vector<double> values(const std::vector<uint8_t>& data, size_t range) const;

 private:
  struct Host;
  std::vector<std::string> near(const std::string& metric) const;

  std::unique_ptr<Host> host_;
  std::vector<std::string> metrics_, units_;
  std::vector<const char*> names_;  // of metrics_
  std::vector<uint8_t> image_;
  size_t passes_ = 0;
};

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
  /// The values of plan().metrics(), for each of the ranges. A pass first does the ranges
  /// uncounted: starting one empties the caches of instructions and constants, which warm launches
  /// would find full.
  std::vector<std::vector<double>> count(const Repeated& repeated);

 private:
  class Session;

  std::unique_ptr<CounterPlan> plan_;
  std::unique_ptr<Session> session_;
};

}  // namespace moegate
