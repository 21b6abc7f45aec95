// SPDX-License-Identifier: Apache-2.0
// A row of one kernel that reads 16.8 MB, as a timer and a counter profiler see it on an H200, for
// tests that plant a cause.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "harness/values/row_profile.h"

namespace moegate::test {

inline KernelRow kernel_row(const std::string& name, double ns, double gap_ns = 0) {
  KernelRow row;
  row.name = name;
  row.grid = "264x1x1";
  row.block = "256x1x1";
  row.registers = 64;
  row.dynamic_shared = 32768;
  row.local_bytes = 0;
  row.ns = ns;
  row.gap_ns = gap_ns;
  return row;
}

inline Result timed_row() {
  Result result;
  result.timer = "cupti";
  result.judged = Judged::span;
  result.samples = 200;
  result.code = "c0de";
  result.span_ns = result.busy_ns = result.sum_ns = 10000;
  result.sm_mhz = 1980;
  result.kernels = {kernel_row("void moe::(anonymous namespace)::gather<128, 64>(Args)", 10000)};
  return result;
}

/// Of the default set (timing/profiler.h). Stalls are per 900 k instructions.
inline Result counted_row() {
  Result result;
  const auto add = [&](const std::string& name, const char* unit, double value) {
    result.metrics.push_back({name, unit, value});
  };
  add("dram__bytes_read.sum", "bytes", 16.8e6);
  add("dram__bytes_write.sum", "bytes", 1.1e6);
  add("lts__t_sectors_srcunit_tex_op_read.sum", "sector", 540e3);
  add("lts__t_sectors_op_atom.sum", "sector", 2000);
  add("sm__inst_executed.sum", "inst", 900e3);
  add("smsp__inst_executed_op_local_ld.sum", "inst", 0);
  add("l1tex__data_bank_conflicts_pipe_lsu.sum", "", 1200);
  add("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", 61);
  add("smsp__issue_active.avg.pct_of_peak_sustained_active", "%", 20);
  add("sm__warps_active.avg.pct_of_peak_sustained_active", "%", 12);
  add("dram__bytes.sum.peak_sustained_elapsed.per_second", "bytes/s", 4.8e12);
  add("sm__cycles_active.max", "cycle", 19800);
  add("sm__cycles_active.avg", "cycle", 17000);
  add("sm__cycles_elapsed.avg.per_second", "Hz", 1.98e9);
  const std::vector<std::pair<std::string, double>> stalls = {
      {"long_scoreboard", 8}, {"barrier", 2},  {"short_scoreboard", 1},
      {"sleeping", 0},        {"selected", 1},
  };
  for (const auto& [reason, warps] : stalls) {
    add("smsp__warps_issue_stalled_" + reason + ".sum", "warp", warps * 900e3);
  }
  return result;
}

inline RowProfile row_profile() {
  RowProfile profile;
  profile.measured = timed_row();
  profile.counted = counted_row();
  profile.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1", 132};
  return profile;
}

/// The counter whose name has this part. There is one.
inline double& counter(RowProfile& profile, const std::string& part) {
  return std::ranges::find_if(
             profile.counted->metrics,
             [&](const Metric& m) { return m.name.find(part) != std::string::npos; })
      ->value;
}

/// The whole launch takes so much longer, in cycles as in time.
inline void slow_down(RowProfile& profile, double share) {
  for (double* ns :
       {&profile.measured->span_ns, &profile.measured->busy_ns, &profile.measured->kernels[0].ns}) {
    *ns *= 1 + share;
  }
  if (!profile.counted) return;
  counter(profile, "sm__cycles_active.avg") *= 1 + share;
  counter(profile, "cycles_active.max") *= 1 + share;
  for (const char* pipe : {"issue_active", "pipe_tensor"}) {
    counter(profile, pipe) /= 1 + share;
  }
}

}  // namespace moegate::test
