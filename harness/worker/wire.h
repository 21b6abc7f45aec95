// SPDX-License-Identifier: Apache-2.0
// Messages between the runner and its worker processes: length-prefixed CBOR (which, unlike JSON,
// carries NaN) over a pipe. The worker may be another build of moegate (the base of an A/B): fields
// are named, a field that one side does not know keeps its default, and kWire changes when that is
// not enough.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

#include "harness/kernel/kernel.h"
#include "harness/values/result.h"

namespace moegate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceFacts, backend, name, klass, uuid, processors,
                                                cache_bytes, memory_bytes, shared_per_block, driver)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fact, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Accuracy, output, ok, why, elements, mismatches,
                                                nonfinite, rel_l2, cosine, scale, max_abs, max_rel,
                                                worst_row, row_p999, worst_index)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SeedError, seed, hash, rel_l2, worst_row, bias)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Control, name, output, outcome, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KernelRow, name, grid, block, cluster, registers,
                                                static_shared, dynamic_shared, ns, gap_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Result, variant, status, why, path, code, accuracy,
                                                seeds, controls, deterministic, timer, tick_ns,
                                                samples, invalid, flags, span_ns, median_ns, low_ns,
                                                high_ns, min_ns, busy_ns, sum_ns, ratio, ratio_low,
                                                ratio_high, sm_mhz, impossible, suspect_warm,
                                                kernels, spans_ns, wall_s)

/// Version of the conversation; programs of different versions do not talk.
constexpr int kWire = 2;

/// Writes one message; false when the other end is gone.
bool send(int fd, const nlohmann::json& message);

enum class Arrival { message, closed, timeout };
/// Waits up to `timeout_s` for a whole message (negative: for ever).
Arrival receive(int fd, double timeout_s, nlohmann::json& message);

}  // namespace moegate
