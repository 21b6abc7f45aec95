// SPDX-License-Identifier: Apache-2.0
// The report on a whole MoE layer: the least times of its steps are those that the steps' own
// operators would be given.
#include <cstdlib>

#include "harness/store/report_fixture.h"
#include "harness/values/roofline.h"
#include "kernels/fused_moe/fused_moe_testing.h"
#include "kernels/moe_align/moe_align_testing.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"
#include "kernels/moe_sum/moe_sum_testing.h"
#include "kernels/silu_mul_quant/silu_mul_quant_testing.h"

namespace moegate::test {
namespace {

class LayerReport : public ReportTest {
 protected:
  LayerReport() { cache_bytes_ = 1; }  // every write counts

  /// One process of a layer of `params`, in as many launches.
  void add_layer(const Cells& params, const std::vector<double>& launches_ns) {
    const Case c = fused_moe::fused_moe_case(params);
    const fused_moe::FusedMoe problem(*host_, c);
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(Backend::cuda));
    add(store, store.begin_process(run, 0, 0), c, "chain", launches_ns, 1, problem.cost(),
        "kernel<int>", problem.facts());
    store.end_run(run, "complete");
  }
  double number(const Table& t, const std::string& column) {
    return std::strtod(at(t, 0, column).c_str(), nullptr);
  }

  std::unique_ptr<Device> host_ = open_host_device();
};

// Slow ceilings, so that microseconds have digits enough.
TEST_F(LayerReport, StepsHaveTheFloorsOfTheirOperators) {
  const Cells layer = {{"tokens", "70"}, {"hidden", "640"}, {"inter", "384"}, {"block", "16"}};
  const Cells ceilings_of[] = {{{"read", "1e6"}, {"rate", "1e30"}},
                               {{"read", "1e30"}, {"rate", "1e9"}}};
  add_layer(layer, {1e9});
  for (const Cells& ceiling : ceilings_of) {
    const std::map<std::string, double> ceilings = {
        {"read_bytes_per_s", std::stod(ceiling.at("read"))},
        {"fp8_flops", std::stod(ceiling.at("rate"))}};
    measure_ceilings(ceilings);
    const auto floor_us = [&](const Cost& cost) {
      return roofline(cost, ceilings, 1).floor_s() * 1e6;
    };
    const moe_gemm::MoeGateUp gate_up(*host_, moe_gemm::moe_gemm_case<moe_gemm::MoeGateUp>(layer));
    const moe_gemm::MoeDown down(*host_, moe_gemm::moe_gemm_case<moe_gemm::MoeDown>(layer));
    const Table t = report("layer");
    ASSERT_EQ(t.rows.size(), 1u);
    const auto expect = [&](const std::string& column, double us) {
      EXPECT_NEAR(number(t, column), us, 2e-3 * us) << column;  // ids of blocks are left out
    };
    expect("gate-up", floor_us(gate_up.cost()));
    expect("down", floor_us(down.cost()));
    if (ceiling.at("read") != "1e6") continue;  // the others are counted by their bytes alone
    Cells quantised = {{"tokens", "70"}, {"inter", "384"}};
    Cells summed = {{"tokens", "70"}, {"topk", "3"}, {"hidden", "640"}};
    Cells aligned = {{"tokens", "70"}, {"block", "16"}};
    const double silu = floor_us(
        silu_mul_quant::SiluMulQuant(*host_, silu_mul_quant::silu_mul_quant_case(quantised))
            .cost());
    const double sum = floor_us(moe_sum::MoeSum(*host_, moe_sum::moe_sum_case(summed)).cost());
    const double align =
        floor_us(moe_align::MoeAlign(*host_, moe_align::moe_align_case(aligned)).cost());
    expect("silu", silu);
    expect("sum", sum);
    const double all = align + floor_us(gate_up.cost()) + silu + floor_us(down.cost()) + sum;
    expect("sum of floors us", all);
    expect("% of sum of floors", 100 * all / 1e6);
  }
}

// The sum has align and one more: x read in bf16, written as codes and scale factors.
TEST_F(LayerReport, InputInBf16IsQuantised) {
  const Cells layer = {{"tokens", "70"}, {"input", "bf16"}};
  const fused_moe::FusedMoe problem(*host_, fused_moe::fused_moe_case(layer));
  add_layer(layer, {1e9});
  measure_ceilings({{"read_bytes_per_s", 1e6}, {"fp8_flops", 1e30}});  // us are bytes
  const Table t = report("layer");
  double rest = number(t, "sum of floors us");
  for (const char* step : {"gate-up", "silu", "down", "sum"}) rest -= number(t, step);
  const double padded = problem.facts()[3].value;
  EXPECT_NEAR(rest, 4 * (70 * 3 + padded) + 70 * (3 * 256 + 2 * 4), 10);  // as printed
}

TEST_F(LayerReport, LaunchesAreInOrderAndFloorsNeedCeilings) {
  add_layer({}, {2000, 9000, 10500, 4000});
  const Table t = report("layer");
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(at(t, 0, "us"), "25.5");
  EXPECT_EQ(at(t, 0, "launches us"), "2.0 + 9.0 + 10.5 + 4.0");
  EXPECT_EQ(at(t, 0, "% of sum of floors"), "");
  EXPECT_EQ(at(t, 0, "% of floor"), "");
}

TEST_F(LayerReport, OtherOperatorsStayOut) {
  add_run(Backend::cuda);
  EXPECT_EQ(report("layer").rows.size(), 0u);
}

}  // namespace
}  // namespace moegate::test
