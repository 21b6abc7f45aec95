// SPDX-License-Identifier: Apache-2.0
// What counters say together: a count over another, or over the time of the busiest multiprocessor.
#pragma once

#include <vector>

#include "harness/values/sample.h"

namespace moegate {

/// Of the whole launch, as far as the counters that each takes are there and not 0:
/// - "DRAM throughput" and "L2 throughput", percent of the chip's peak while a multiprocessor had work;
/// - "tensor cycles", in which a multiprocessor's tensor pipe was busy, mean over them: work, whatever
///   the rate;
/// - "stalled on <reason>" for each smsp__warps_issue_stalled_<reason>.sum but `selected`, which is none:
///   warps that wait in a cycle, summed over the cycles, per executed instruction.
std::vector<Metric> derived_counters(const std::vector<Metric>& counters);

}  // namespace moegate
