// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/counter_roles.h"

#include <gtest/gtest.h>

#include "harness/cause/cause_fixture.h"

namespace moegate::test {
namespace {

TEST(CounterRoles, KnowFamiliesOfNames) {
  const auto label = [](const std::string& name) {
    const auto role = role_of(name);
    return role ? role->label : "none";
  };
  EXPECT_EQ(label("dram__bytes_read.sum"), "DRAM bytes read");
  EXPECT_EQ(label("dram__bytes_read.sum.per_second"), "none");
  EXPECT_EQ(label("lts__t_sectors_op_red.sum"), "reductions in L2");
  EXPECT_EQ(label("lts__t_requests_op_atom.sum"), "atomics");
  EXPECT_EQ(label("l1tex__data_bank_conflicts_pipe_lsu.sum"), "bank conflicts");
  EXPECT_EQ(label("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"), "bank conflicts");
  EXPECT_EQ(label("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio"),
            "lg throttle");
  EXPECT_EQ(label("smsp__average_warp_latency_issue_stalled_membar.ratio"), "membar");
  EXPECT_EQ(label("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
            "tensor pipe");
  EXPECT_EQ(label("stalled on branch_resolving"), "branch resolving");
  EXPECT_EQ(label("smsp__warps_issue_stalled_barrier.sum"), "none") << "a sum is no rate";
  EXPECT_EQ(label("l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum"), "bytes read by TMA");
  EXPECT_EQ(label("core_wait"), "none");
}

TEST(DerivedCounters, AreCountsOverTimeAndInstructions) {
  std::vector<Metric> counters = counted_row().metrics;
  const auto derived = derived_counters(counters);
  ASSERT_EQ(derived.size(), 6u) << "selected is no stall";
  EXPECT_EQ(derived[0].name, "DRAM throughput");
  EXPECT_NEAR(derived[0].value, 100 * 17.9e6 / 10e-6 / 4.8e12, 1e-9);
  EXPECT_EQ(derived[1].name, "tensor cycles");
  EXPECT_NEAR(derived[1].value, 0.61 * 17000, 1e-9);
  EXPECT_EQ(derived[2].name, "stalled on long_scoreboard");
  EXPECT_EQ(derived[2].value, 8);
  for (Metric& m : counters) m.ordinal = 0;
  EXPECT_TRUE(derived_counters(counters).empty()) << "of the whole launch only";
}

}  // namespace
}  // namespace moegate::test
