// SPDX-License-Identifier: Apache-2.0
// Which metrics a chip has, how many passes they take, and their values in what was counted, by
// CUPTI's profiler host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct CUpti_Profiler_Host_Object;

namespace moegate {

/// What a chip can count, as its name alone tells: no GPU is needed.
class CounterPlan {
 public:
  /// `chip` as CUPTI calls it, "GH100". `availability`: what the device at hand says it has; empty:
  /// all. Throws Error(usage) for a metric that the chip does not have, naming near ones,
  /// Error(environment) where CUPTI or libnvperf_host cannot be used.
  CounterPlan(const std::string& chip, const std::vector<std::string>& metrics,
              const std::vector<uint8_t>& availability = {});
  CounterPlan(CounterPlan&&) = delete;

  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<std::string>& units() const { return units_; }  // "byte", "percent"
  const std::vector<uint8_t>& image() const { return image_; }
  /// How often everything has to be launched.
  size_t passes() const { return passes_; }
  /// Values of metrics() in a range of a counter data image.
  std::vector<double> values(const std::vector<uint8_t>& data, size_t range) const;

 private:
  std::vector<std::string> near(const std::string& metric) const;

  std::unique_ptr<CUpti_Profiler_Host_Object, void (*)(CUpti_Profiler_Host_Object*)> host_;
  std::vector<std::string> metrics_, units_;
  std::vector<const char*> names_;  // of metrics_
  std::vector<uint8_t> image_;
  size_t passes_ = 0;
};

}  // namespace moegate
