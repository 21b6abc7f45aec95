// SPDX-License-Identifier: Apache-2.0
// The reports of the two pull requests on the grouped GEMMs of a fused MoE.

#include "harness/store/report_fixture.h"

namespace moegate::test {
namespace {

class MoeGemmReportTest : public ReportTest {
 protected:
  void measure_rates() {
    measure_ceilings({{"read_bytes_per_s", 4e12}, {"fp8_flops", 1.5e15}, {"bf16_flops", 8e14}});
  }
};

TEST_F(MoeGemmReportTest, ARateIsThatOfTheProductsType) {
  measure_rates();
  add_moe_run(Backend::cuda, {{"moe_gate_up", "gather", "64", {1000}}});
  add_moe_run(Backend::cuda, {{"moe_gate_up", "gather", "64", {1000}}}, {{"dtype", "bf16"}});
  add_moe_run(Backend::cuda, {{"moe_gate_up", "gather", "64", {1000}}}, {{"dtype", "int8"}});
  EXPECT_EQ(at(report("roofline", 1), 0, "% of rate"), "36.1") << "541 TFLOP/s of 1500";
  EXPECT_EQ(at(report("roofline", 2), 0, "% of rate"), "67.7") << "of 800";
  EXPECT_EQ(at(report("roofline", 3), 0, "% of rate"), "36.1") << "int8 is as fast as fp8";
}

TEST_F(MoeGemmReportTest, AChoiceIsOneForAllRoutings) {
  Store store = Store::open(db_, Store::Mode::write);
  const int64_t run = store.begin_run(info(Backend::cuda));
  struct Time {
    const char *variant, *block;
    std::map<std::string, double> us;  // by routing
  };
  const std::vector<Time> times = {{"quick", "16", {{"uniform", 10}, {"zipf:1.2", 20}}},
                                   {"steady", "64", {{"uniform", 12}, {"zipf:1.2", 12}}},
                                   {"failed_once", "64", {{"uniform", 11}}}};
  for (int round = 0; round < 3; ++round) {
    const int64_t process = store.begin_process(run, round, round);
    for (const auto& [variant, block, us] : times) {
      for (const auto& [routing, one] : us) {
        const Case c{
            "s", "m", "moe_down", {{"tokens", "8"}, {"block", block}, {"routing", routing}}, {}};
        add(store, process, c, variant, {one * (990 + 10 * round)}, 1);
      }
    }
  }
  store.end_run(run, "complete");
  const Table t = report("choice");
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(at(t, 0, "choice"), "steady block=64");
  EXPECT_EQ(at(t, 0, "us"), "12");
  EXPECT_EQ(at(t, 0, "Next"), "quick block=16 1.18x (1.18–1.18)") << "geometric means";
  EXPECT_EQ(at(t, 0, "Regret"), "20.0 %: uniform");
}

TEST_F(MoeGemmReportTest, FormatsOfALayerStandSideBySide) {
  measure_rates();
  Store store = Store::open(db_, Store::Mode::write);
  const int64_t run = store.begin_run(info(Backend::cuda));
  struct Time {
    const char *op, *variant, *tokens;
    Cells format;
    double us;
  };
  const Cells bf16 = {{"dtype", "bf16"}, {"scaling", "block"}},
              int8 = {{"dtype", "int8"}, {"scaling", "channel"}},
              mxfp4 = {{"weights", "mxfp4"}, {"group", "32"}},
              int4 = {{"weights", "int4"}, {"group", "128"}};
  const std::vector<Time> times = {
      {"moe_down", "slow", "1", bf16, 100},    {"moe_down", "quick", "1", bf16, 80},
      {"moe_down", "quick", "1", int8, 40},    {"w4_down", "quick", "1", mxfp4, 20},
      {"moe_down", "quick", "2048", bf16, 80}, {"w4_down", "quick", "2048", int4, 100},
      {"w4_gate_up", "quick", "1", mxfp4, 20}};
  for (int round = 0; round < 2; ++round) {
    const int64_t process = store.begin_process(run, round, round);
    for (const Time& time : times) {
      Cells params = {{"experts", "8"},    {"topk", "2"},    {"hidden", "512"},
                      {"inter", "256"},    {"block", "16"},  {"routing", "uniform"},
                      {"launch", "graph"}, {"cache", "cold"}};
      params.insert(time.format.begin(), time.format.end());
      params["tokens"] = time.tokens;
      const double us = time.us * (1 + 0.1 * round);
      add(store, process, Case{"s", "m", time.op, params, {}}, time.variant, {us * 1000}, 1);
    }
  }
  store.end_run(run, "complete");
  const Table t = report("formats");
  std::vector<std::string> is;
  for (size_t row = 0; row < t.rows.size(); ++row) {
    is.push_back(at(t, row, "product") + " " + at(t, row, "tokens") + " " + at(t, row, "format") +
                 " " + at(t, row, "over bf16") + " " + at(t, row, "place"));
  }
  EXPECT_EQ(is, (std::vector<std::string>{"gate-up 1 mxfp4  1", "down 1 bf16  3",
                                          "down 1 int8 by channel 2.00x 2", "down 1 mxfp4 4.00x 1",
                                          "down 2048 bf16  1", "down 2048 int4 by 128 0.80x 2"}));
  EXPECT_EQ(at(t, 1, "layer"), "2 of 8 experts, 512 x 256");
  EXPECT_EQ(at(t, 1, "variant"), "quick") << "the quickest of a format";
}

class SplitKReport : public MoeGemmReportTest {
 protected:
  /// gather is best with blocks of 16, split_k2 with 64.
  void add_split_k() {
    add_moe_run(Backend::cuda, {{"moe_gate_up", "gather", "16", {20}},
                                {"moe_gate_up", "gather", "64", {25}},
                                {"moe_gate_up", "gather_split_k1", "16", {20}},
                                {"moe_gate_up", "gather_split_k1", "64", {21}},
                                {"moe_gate_up", "split_k2", "16", {5, 20}},
                                {"moe_gate_up", "split_k2", "64", {6, 10}},
                                {"moe_down", "gather", "16", {7}}});
  }
  Table table(int64_t run = 1) { return report("pr-aphrodite-1603", run); }
};

TEST_F(SplitKReport, HasEveryVariantAtItsBestBlock) {
  add_split_k();
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 3u) << "none of moe_down";
  EXPECT_EQ(at(t, 0, "variant"), "gather") << "the before first, then what was submitted";
  EXPECT_EQ(at(t, 1, "variant"), "gather_split_k1");
  EXPECT_EQ(at(t, 0, "tokens"), "8192");
  EXPECT_EQ(column(t, "block"),
            (Cells{{"gather", "16"}, {"gather_split_k1", "16"}, {"split_k2", "64"}}));
  EXPECT_EQ(column(t, "us"),
            (Cells{{"gather", "20"}, {"gather_split_k1", "20"}, {"split_k2", "16"}}));
}

TEST_F(SplitKReport, SpeedUpsAreWithAndWithoutZeroing) {
  add_split_k();
  const Table t = table();
  EXPECT_EQ(column(t, "speed-up"),
            (Cells{{"gather", ""}, {"gather_split_k1", "~"}, {"split_k2", "1.250x"}}));
  EXPECT_EQ(
      column(t, "95 % CI"),
      (Cells{{"gather", ""}, {"gather_split_k1", "1.000–1.000"}, {"split_k2", "1.250–1.250"}}));
  EXPECT_EQ(column(t, "speed-up without zeroing"),
            (Cells{{"gather", ""}, {"gather_split_k1", ""}, {"split_k2", "2.000x"}}));
  EXPECT_EQ(column(t, "zeroing us")["split_k2"], "6");
  EXPECT_EQ(column(t, "GEMM us")["split_k2"], "10");
  EXPECT_EQ(column(t, "GEMM us")["gather"], "") << "it is all of it";
}

TEST_F(SplitKReport, FloorsNeedMeasuredCeilings) {
  add_split_k();
  EXPECT_EQ(at(table(), 0, "% of floor"), "");
  measure_rates();
  const Table t = table();
  // 1.0 GB and what of 0.15 GB does not fit in 60 MiB at 4 TB/s; 541.2 GFLOP at 1.5 PFLOP/s.
  EXPECT_EQ(at(t, 0, "floor us: memory"), "271.77");
  EXPECT_EQ(at(t, 0, "floor us: products"), "360.8");
  EXPECT_EQ(at(t, 0, "% of floor"), "1804.1") << "the larger one";
}

TEST_F(SplitKReport, WhatWasPublishedStandsByItsOwnShape) {
  add_split_k();
  EXPECT_EQ(column(table(), "expected speed-up"),
            (Cells{{"gather", ""}, {"gather_split_k1", "1.00"}, {"split_k2", ""}}));
  EXPECT_EQ(column(table(), "published gain")["gather_split_k1"], "");
  add_moe_run(Backend::cuda,
              {{"moe_gate_up", "gather", "64", {8}}, {"moe_gate_up", "gather_split_k1", "64", {8}}},
              {{"experts", "128"}, {"hidden", "2048"}, {"inter", "384"}});
  EXPECT_EQ(column(table(2), "published gain"),
            (Cells{{"gather", ""}, {"gather_split_k1", "~0.4 % end to end"}}));
}

class SortedRowsReport : public MoeGemmReportTest {
 protected:
  /// Of the PR's route each GEMM alone would be best with another block, their sum with 64.
  void add_routes(const Cells& params = {}) {
    add_moe_run(Backend::cuda,
                {{"moe_gate_up", "gather", "64", {800}},
                 {"moe_down", "gather", "64", {1200}},
                 {"moe_gate_up", "sorted_rows", "64", {800}},
                 {"moe_down", "tma_down", "64", {800}},
                 {"moe_gate_up", "sorted_rows", "128", {700}},
                 {"moe_down", "tma_down", "128", {1000}},
                 {"moe_gate_up", "split_k2", "64", {100, 900}}},
                params);
  }
  Table table(int64_t run = 1) { return report("pr-sglang-10567", run); }
};

TEST_F(SortedRowsReport, JoinsTheTwoGemmsOfARouteAtOneBlock) {
  add_routes();
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 3u);
  EXPECT_EQ(at(t, 0, "route"), "gather");
  EXPECT_EQ(at(t, 1, "route"), "sorted_rows + tma_down");
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(at(t, row, "model"), "r1-tp8");
    EXPECT_EQ(at(t, row, "block"), "64");
  }
  EXPECT_EQ(at(t, 1, "gate-up us"), "800");
  EXPECT_EQ(at(t, 1, "gate-up speed-up"), "~");
  EXPECT_EQ(at(t, 1, "down us"), "800");
  EXPECT_EQ(at(t, 1, "down speed-up"), "1.50x (1.50–1.50)");
  EXPECT_EQ(at(t, 1, "both us"), "1599.9");
  EXPECT_EQ(at(t, 1, "both speed-up"), "1.25x (1.25–1.25)");
  EXPECT_EQ(at(t, 2, "gate-up speed-up"), "0.80x (0.80–0.80)");
  EXPECT_EQ(at(t, 2, "down us"), "") << "it has none";
  EXPECT_EQ(at(t, 2, "both us"), "");
}

TEST_F(SortedRowsReport, FloorsSayWhatLimitsHereAndOnAnH20) {
  add_routes();
  measure_rates();
  const Table t = table();
  EXPECT_EQ(at(t, 1, "down floor us: memory"), "374.3");
  EXPECT_EQ(at(t, 1, "down floor us: products"), "180.4");
  EXPECT_EQ(at(t, 1, "down % of floor"), "46.8");
  EXPECT_EQ(at(t, 1, "gate-up % of floor"), "45.1") << "360.8 us of products";
  EXPECT_EQ(at(t, 1, "on an H20: memory"), "390");
  EXPECT_EQ(at(t, 1, "on an H20: products"), "914.2");
}

TEST_F(SortedRowsReport, PublishedFiguresStandByTheSameTokensAndSkew) {
  add_routes();
  add_routes({{"tokens", "16372"}});
  add_routes({{"routing", "shared:uniform"}});
  EXPECT_EQ(column(table(1), "published down us, H20", "route"),
            (Cells{{"gather", "2164 to 2204 (2430)"},
                   {"sorted_rows + tma_down", "1377 to 1456 (1435)"},
                   {"split_k2", ""}}));
  EXPECT_EQ(column(table(2), "published both us, H20", "route"),
            (Cells{{"gather", "8766"}, {"sorted_rows + tma_down", "6532"}, {"split_k2", ""}}));
  EXPECT_EQ(at(table(3), 0, "published down us, H20"), "");
}

TEST_F(SortedRowsReport, AHostComparesWithItsYardstick) {
  add_moe_run(Backend::host, {{"moe_gate_up", "gather", "64", {8}},
                              {"moe_down", "gather", "64", {8}},
                              {"moe_gate_up", "sorted_rows", "64", {4}},
                              {"moe_down", "sorted_rows", "64", {16}}});
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(at(t, 1, "route"), "sorted_rows");
  EXPECT_EQ(at(t, 1, "gate-up speed-up"), "2.00x (2.00–2.00)");
  EXPECT_EQ(at(t, 1, "down speed-up"), "0.50x (0.50–0.50)");
  EXPECT_EQ(at(t, 1, "both speed-up"), "") << "ratios to two yardsticks do not add up";
}

}  // namespace
}  // namespace moegate::test
