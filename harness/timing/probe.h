// SPDX-License-Identifier: Apache-2.0
// What `moegate doctor` finds out about a device: facts, the timer's health, a proof that cold is
// cold, measured ceilings. Plain data out; what is missing is a row with ok = false, never an
// error.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/kernel/device.h"
#include "harness/timing/timer.h"

namespace moegate {

/// One line of the report.
struct Probe {
  std::string name;
  std::string value;  // a number where there is a unit
  std::string unit;
  std::string note;  // what it means, or why it is missing
  bool ok = true;
};

/// Everything but the ceilings, for either backend. On a GPU call prepare_cupti() before the device
/// is opened.
std::vector<Probe> probe_device(Device& device);

/// Highest rates seen on this device: read_bytes_per_s, copy_bytes_per_s (read plus written) and,
/// on a GPU with cuBLASLt, bf16_flops and fp8_flops. A rate that cannot be measured is left out.
std::map<std::string, double> measure_ceilings(Device& device);

/// The two backends' parts of the above; no_cuda.cc defines the CUDA ones to find nothing.
std::vector<Probe> probe_host(Device& device);
std::vector<Probe> probe_cuda(Device& device);
std::map<std::string, double> measure_host_ceilings(Device& device);
std::map<std::string, double> measure_cuda_ceilings(Device& device);

/// A problem with one buffer that a variant reads: the ruler that both backends measure.
class RulerProblem final : public Problem {
 public:
  RulerProblem(Device& device, int64_t bytes);
  Checked check() const override { return {}; }
  Corruptions corruptions() override {
    const auto none = Corruption::not_applicable("a ruler has no output");
    return {none, none, none};
  }
  Cost cost() const override;
  const Tensor& buffer() const { return *buffer_; }

 private:
  Tensor* buffer_;
};

/// A variant named `name` that does `launch` on a RulerProblem.
Variant ruler_variant(const std::string& name, Backend backend,
                      void (*launch)(const RulerProblem&, const Launch&));

/// Trimmed mean and relative standard deviation of valid spans.
struct RulerLevel {
  double ns = 0;
  double spread = 0;
  int valid = 0, invalid = 0;
};

/// Samples `subject` under the conditions, after a short warm-up.
RulerLevel sample_ruler(Timer& timer, const Subject& subject, const Conditions& conditions,
                        int samples);

/// A/A: two sessions on the same subject, sampled in turn. A ratio away from 1 is this device's
/// noise.
Probe probe_noise(Timer& timer, const Subject& subject, const Conditions& conditions);

}  // namespace moegate
