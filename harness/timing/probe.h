// SPDX-License-Identifier: Apache-2.0
// What `moegate doctor` finds out about a device: facts, the timer's health, a proof that cold is
// cold, noise, measured ceilings. Plain data out; what is missing is a row with ok = false, never
// an error.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/kernel/check.h"
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

/// What held a GPU's clock down at a moment; nothing: empty.
struct ClockLimit {
  std::string when;  // "before", "behind the ceilings"
  std::string what;
};

struct Health {
  std::vector<Probe> probes;
  /// Whether the timer that is the default here works.
  bool times = true;
  /// A/A: of every turn the log of one session's level to the other's; empty: not measured.
  std::vector<double> log_ratios;
  double tick = 0;                 // of the timer, as a share of the level
  bool quiet = false;              // whether the A/A is as it should be
  std::vector<ClockLimit> limits;  // of a GPU whose NVML says
};

/// Everything but the ceilings, for either backend. On a GPU call prepare_cupti() before the device
/// is opened.
Health probe_device(Device& device);

/// What holds the clock down now; absent: a host, or NVML does not say.
std::optional<std::string> clock_limit(const Device& device);
/// The row about all of them. At the ceilings a limit is no fault: full load reaches the power cap.
Probe limits_probe(std::span<const ClockLimit> limits);
constexpr const char* kBehindCeilings = "behind the ceilings";

/// The chip that moegate's own code runs on: whether the driver compiled it, and whether moegate
/// was ever run on such a one.
Probe chip_probe(int capability, bool compiled_by_driver);
/// Whether this is a whole GPU under an ordinary Linux: by its name ("… MIG 1g.10gb"), NVML and the
/// kernel's release ("…-microsoft-standard-WSL2").
Probe whole_probe(const std::string& name, bool is_virtual, const std::string& kernel);

/// Highest rates seen on this device: read_bytes_per_s, copy_bytes_per_s (read plus written) and,
/// on a GPU with cuBLASLt, bf16_flops and fp8_flops. A rate that cannot be measured is left out.
std::map<std::string, double> measure_ceilings(Device& device);

/// The two backends' parts of the above; no_cuda.cc defines the CUDA ones to find nothing.
Health probe_host(Device& device);
Health probe_cuda(Device& device);
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

/// What a machine that can measure shows; beyond it a row is not ok.
struct Quiet {
  double ratio;    // A/A: by how much the ratio may differ from 1, and a third of its 95 % interval
  double spread;   // relative standard deviation of samples
  double invalid;  // share of samples
};
Quiet quiet_of(Backend backend);

/// Trimmed mean and relative standard deviation of valid spans.
struct RulerLevel {
  double ns = 0;
  double spread = 0;
  int valid = 0, invalid = 0;
};

/// Samples `subject` under the conditions, after a short warm-up.
RulerLevel sample_ruler(Timer& timer, const Subject& subject, const Conditions& conditions,
                        int samples);
/// Its row, in us; `timer` took the samples.
Probe level_probe(const std::string& name, const RulerLevel& level, const std::string& timer,
                  const Quiet& quiet);

/// Valid spans of two sessions on the same subject that were sampled in turn.
struct Turns {
  std::vector<std::vector<double>> a, b;  // by turn
  int invalid = 0;
};

/// A/A: a ratio away from 1 is this device's noise.
Turns take_turns(Timer& timer, const Subject& subject, const Conditions& conditions);
/// Adds its row, log_ratios, tick and quiet.
void add_noise(const Turns& turns, double tick_ns, const Quiet& quiet, Health& health);

}  // namespace moegate
