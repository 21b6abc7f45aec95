// SPDX-License-Identifier: Apache-2.0
// Clocks, temperature, power, throttle reasons, energy and processes of one GPU, from NVML opened
// at run time. Everything is optional: what cannot be read is absent, and nothing here throws.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moegate {

struct GpuState {
  std::optional<int> sm_mhz, memory_mhz;
  std::optional<int> sm_max_mhz;
  std::optional<int> celsius;
  std::optional<double> watts, limit_watts;
  std::vector<std::string> throttle;  // why the clock is held down now; empty when it is not
  std::string why_none;               // why nothing could be read; empty otherwise
};

/// State of the GPU with this UUID ("GPU-…").
GpuState read_gpu_state(const std::string& uuid);

/// What one GPU has used since its driver was loaded, by its own count. The count moves in steps, a
/// few to some dozens in a second; timing/energy.h makes power of it.
class EnergyCounter {
 public:
  /// Of the GPU with this UUID.
  explicit EnergyCounter(const std::string& uuid);
  /// Why it cannot be read; empty when it can.
  const std::string& why_none() const { return why_none_; }
  std::optional<double> millijoules() const;

 private:
  void* gpu_ = nullptr;
  std::string why_none_;
};

/// How many processes have a context on the GPU with this UUID beside this one, which must have
/// one. Absent: NVML does not say, or does not even know of this one.
std::optional<int> other_gpu_processes(const std::string& uuid);

/// Whether the GPU with this UUID is a virtual one (vGPU), whose SMs serve other machines, too.
bool is_virtual_gpu(const std::string& uuid);

/// "580.159.03"; empty without NVML.
std::string nvidia_driver_version();

/// Reasons in one line, for the store: "power cap, thermal"; empty when not throttled.
std::string throttle_text(const GpuState& state);

}  // namespace moegate
