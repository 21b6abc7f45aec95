// SPDX-License-Identifier: Apache-2.0
// Looks at launches for something other than their time: hardware counters, where warps wait,
// energy. A profiler disturbs what it looks at, so its process takes no latencies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"
#include "harness/values/conditions.h"
#include "harness/values/result.h"

namespace moegate {

struct Profiling {
  std::vector<std::string> metrics;  // counters by CUPTI's names; empty: the default ones
  bool per_kernel = false;           // counters of each kernel of a launch, too
};

class Profiler {
 public:
  virtual ~Profiler() = default;
  /// Launches the subject, as cold as `conditions` want it, as often as it needs to, and adds what
  /// it saw to the result's metrics, kernels or stalls. Throws CannotCapture for a launch that does
  /// not fit a graph, Error(environment) when a kernel failed or the profiler broke.
  virtual void profile(const Subject& subject, const Conditions& conditions, Result& result) = 0;
};

/// Hardware counters, by CUPTI's range profiler. Throws Error(environment) where they cannot be
/// read, naming the remedy, and Error(usage) for a metric that the chip does not have, naming
/// near ones.
std::unique_ptr<Profiler> make_counter_profiler(Device& device, const Profiling& profiling);
/// Where warps wait, by CUPTI's sampling of the program counter. Throws Error(environment).
std::unique_ptr<Profiler> make_stall_profiler(Device& device, const Profiling& profiling);
/// Energy per launch and mean power, by NVML's counter. Throws Error(environment).
std::unique_ptr<Profiler> make_energy_profiler(Device& device, const Profiling& profiling);

// Which counters are read where nobody names any. CUPTI's names; a chip that lacks one
// refuses them.

/// What tells a reviewer why a kernel takes its time: bytes, hit rates, pipes, instructions, local
/// memory, bank conflicts, what warps wait for. Eight passes on GH100; throughputs of whole units,
/// which alone take 4 to 8 passes each, are left to their parts.
const std::vector<std::string>& default_counters();

}  // namespace moegate
