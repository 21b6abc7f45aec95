// SPDX-License-Identifier: Apache-2.0
// What a hardware counter says, by its name: one table, which counter_roles.cc holds. Names are
// CUPTI's and those of counter_roles.h; a counter that is not in the table is a number like any
// other, and no cause.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

enum class RoleKind {
  work,      // a count that the kernels' code and data decide
  conflict,  // a count of what is done again
  pipe,      // busy, percent of its peak
  overall,   // busy, percent of the busiest of several pipes
  warps,     // resident warps, percent
  stall,     // warps that wait, per issued instruction
  cycles,    // in which the busiest multiprocessor had work: the time of the kernels, without gaps
  active     // cycles in which a multiprocessor had work, mean over them
};

/// Counts that are shares of one total: 6 % more of a tenth is not 6 % more.
enum class RoleGroup { none, dram, l2, tma, atomics, instructions, tensor };

struct CounterRole {
  std::string label;  // "DRAM bytes read", "tensor pipe", "barrier"
  RoleKind kind = RoleKind::work;
  double least = 0;  // share by which it has to differ: several times what an A/A shows
  double floor = 0;  // and number, in its own unit
  RoleGroup group = RoleGroup::none;
  bool in_total = false;  // counts towards its group's total; others are a part of what does
};

/// The role of a counter; nothing for one without.
std::optional<CounterRole> role_of(const std::string& counter);

// What counters say together: a count over another, or over the time of the busiest multiprocessor.

/// Of the whole launch, as far as the counters that each takes are there and not 0:
/// - "DRAM throughput" and "L2 throughput", percent of the chip's peak while a multiprocessor
///   had work;
/// - "tensor cycles", in which a multiprocessor's tensor pipe was busy, mean over them: work,
///   whatever the rate;
/// - "stalled on <reason>" for each smsp__warps_issue_stalled_<reason>.sum but `selected`, which is
///   none: warps that wait in a cycle, summed over the cycles, per executed instruction.
std::vector<Metric> derived_counters(const std::vector<Metric>& counters);

}  // namespace moegate
