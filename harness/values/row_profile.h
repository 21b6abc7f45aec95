// SPDX-License-Identifier: Apache-2.0
// All that is known of a row on one side of a comparison beside its levels: what a timer and the
// profilers saw of it.
#pragma once

#include <optional>
#include <span>

#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// What was not looked at is absent.
struct RowProfile {
  std::optional<Result> measured;  // timed: kernels with their times and gaps, path, code, clock
  std::optional<Result> counted;   // hardware counters, in `metrics`
  std::optional<Result> stalled;   // where warps waited, in `stalls`
  std::optional<Result> metered;   // energy, in `metrics`
  DeviceFacts device;
};

/// Place of the process of the median span, of those that were timed; nothing where none was.
std::optional<size_t> middle_process(std::span<const Result> processes);

/// What the processes of a row have in common: their middle_process(), with the medians of
/// times, gaps and clock over all that were timed and launched as many kernels. Nothing where none
/// was measured.
std::optional<Result> typical(std::span<const Result> processes);

/// The same, but that timed kernels whose local memory is unknown have that of the counted ones,
/// which the driver states, where both are the same in the same order.
RowProfile with_local_memory(RowProfile profile);

}  // namespace moegate
