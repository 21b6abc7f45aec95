// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/profiler.h"

namespace moegate {

const std::vector<std::string>& default_counters() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = {
        // Work: what has to be moved and executed, whatever the clock.
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "lts__t_sectors_srcunit_tex_op_read.sum",
        "lts__t_sectors_srcunit_tex_op_write.sum",
        "lts__t_sectors_op_atom.sum",
        "lts__t_sectors_op_red.sum",
        "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum",
        "sm__inst_executed.sum",
        // Not op_hmma: compilers load constants with HFMA2.MMA.
        "sm__inst_executed_pipe_tensor_op_gmma.sum",
        "sm__inst_executed_pipe_tensor_op_imma.sum",
        "smsp__inst_executed_op_local_ld.sum",
        "smsp__inst_executed_op_local_st.sum",
        "l1tex__data_bank_conflicts_pipe_lsu.sum",
        // Rates, over the cycles in which an SM had a warp: a range also holds the idle time around
        // the launch, so that nothing per elapsed cycle means anything.
        "lts__t_sector_hit_rate.pct",
        "l1tex__t_sector_hit_rate.pct",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        // Peaks, to which the time of the busiest SM makes rates.
        "dram__bytes.sum.peak_sustained_elapsed.per_second",
        "lts__t_sectors.sum",
        "lts__t_sectors.sum.peak_sustained",
        "lts__cycles_elapsed.avg.per_second",
        "sm__cycles_active.max",
        "sm__cycles_active.avg",
        "sm__cycles_elapsed.avg.per_second",
        "smsp__warps_active.sum",
    };
    for (const char* stall : {"barrier", "branch_resolving", "dispatch_stall", "drain", "gmma",
                              "imc_miss", "lg_throttle", "long_scoreboard", "math_pipe_throttle",
                              "membar", "mio_throttle", "misc", "no_instruction", "not_selected",
                              "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"}) {
      names.push_back(std::string("smsp__warps_issue_stalled_") + stall + ".sum");
    }
    return names;
  }();
  return all;
}

}  // namespace moegate
