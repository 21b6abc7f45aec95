// SPDX-License-Identifier: Apache-2.0
// Messages between the runner and its worker processes: length-prefixed CBOR (which, unlike JSON,
// carries NaN) over a pipe.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

#include "harness/kernel.h"
#include "harness/result.h"

namespace moegate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceFacts, backend, name, klass, uuid, processors, cache_bytes,
                                   memory_bytes, shared_per_block, driver)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Fact, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Accuracy, output, ok, why, elements, mismatches, nonfinite,
                                   rel_l2, cosine, scale, max_abs, max_rel, worst_row, row_p999,
                                   worst_index)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Control, name, output, outcome, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SeedError, seed, hash, rel_l2, worst_row, bias)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelRow, name, grid, block, cluster, registers, static_shared,
                                   dynamic_shared, ns, gap_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Result, variant, status, why, path, code, accuracy, seeds,
                                   controls, deterministic,
                                   timer, tick_ns, samples, invalid, flags, span_ns, median_ns,
                                   low_ns, high_ns, min_ns, busy_ns, sum_ns, ratio, ratio_low,
                                   ratio_high, sm_mhz, impossible, suspect_warm, kernels, spans_ns,
                                   wall_s)

/// Writes one message; false when the other end is gone.
bool send(int fd, const nlohmann::json& message);

enum class Arrival { message, closed, timeout };
/// Waits up to `timeout_s` for a whole message (negative: for ever).
Arrival receive(int fd, double timeout_s, nlohmann::json& message);

}  // namespace moegate
