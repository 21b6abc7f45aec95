// SPDX-License-Identifier: Apache-2.0
// The reports on FC2 as one dense GEMM: the pull request's table, and dense against sparse.

#include "harness/store/report_fixture.h"

namespace moegate::test {
namespace {

class DenseFc2ReportTest : public ReportTest {
 protected:
  void add_the_pr(const Cells& params = {}) {
    add_dense_run(Backend::cuda,
                  {{"sparse_rows", 100},
                   {"cublaslt_plain", 110},
                   {"stream_k", 125},
                   {"alpha_per_expert_cluster2", 150},
                   {"alpha_per_expert_n64", 144},
                   {"alpha_per_expert", 160},
                   {"alpha_per_k_tile_n64", 180},
                   {"alpha_per_k_tile", 200}},
                  params);
  }
  Table table(int64_t run = 1) { return report("pr-tensorrt-llm-12686", run); }
  /// The cells of a column by variant, but for empty ones.
  Cells column(const std::string& name, int64_t run = 1) {
    Cells cells = ReportTest::column(table(run), name);
    std::erase_if(cells, [](const auto& cell) { return cell.second.empty(); });
    return cells;
  }
};

TEST_F(DenseFc2ReportTest, ThePairsComeFirstAndAreJudgedEachByItsOwnBefore) {
  add_the_pr();
  const Table t = table();
  const std::vector<std::string> order = {"alpha_per_k_tile",
                                          "alpha_per_expert",
                                          "alpha_per_k_tile_n64",
                                          "alpha_per_expert_n64",
                                          "alpha_per_expert_cluster2",
                                          "stream_k",
                                          "sparse_rows",
                                          "cublaslt_plain"};
  ASSERT_EQ(t.rows.size(), order.size());
  for (size_t row = 0; row < order.size(); ++row) EXPECT_EQ(at(t, row, "variant"), order[row]);
  EXPECT_EQ(at(t, 0, "model"), "r1-tp8");
  EXPECT_EQ(at(t, 0, "tokens"), "128");
  EXPECT_EQ(column("us")["alpha_per_expert"], "159.99");
  EXPECT_EQ(column("speed-up"), (Cells{{"alpha_per_expert", "1.250x"},
                                       {"alpha_per_expert_n64", "1.250x"},
                                       {"alpha_per_expert_cluster2", "1.333x"},
                                       {"stream_k", "1.600x"},
                                       {"sparse_rows", "2.000x"},
                                       {"cublaslt_plain", "1.818x"}}));
  EXPECT_EQ(column("against"), (Cells{{"alpha_per_expert", "alpha_per_k_tile"},
                                      {"alpha_per_expert_n64", "alpha_per_k_tile_n64"},
                                      {"alpha_per_expert_cluster2", "alpha_per_k_tile"},
                                      {"stream_k", "alpha_per_k_tile"},
                                      {"sparse_rows", "alpha_per_k_tile"},
                                      {"cublaslt_plain", "alpha_per_k_tile"}}));
  EXPECT_EQ(column("95 % CI")["alpha_per_expert"], "1.250–1.250");
  EXPECT_EQ(column("TFLOP/s issued")["alpha_per_k_tile"], "601.3") << "120.26 GFLOP in 200 us";
  EXPECT_EQ(column("TFLOP/s issued").count("sparse_rows"), 0u);
}

TEST_F(DenseFc2ReportTest, RowsSayWhatTheyAre) {
  add_the_pr();
  EXPECT_EQ(column("what it is"),
            (Cells{{"alpha_per_k_tile", "before, 128x128"},
                   {"alpha_per_expert", "after, 128x128"},
                   {"alpha_per_k_tile_n64", "before, 128x64"},
                   {"alpha_per_expert_n64", "after, 128x64"},
                   {"alpha_per_expert_cluster2", "after, 256x128 of two blocks"},
                   {"stream_k", "ours"},
                   {"sparse_rows", "ours, useful products only"},
                   {"cublaslt_plain", "library, without the alpha work"}}));
}

TEST_F(DenseFc2ReportTest, StepsStandBesideTheirPairAndHaveNoPublishedFigures) {
  add_dense_run(Backend::cuda, {{"alpha_per_expert_n64_acc3", 120},
                                {"alpha_per_expert_n64", 144},
                                {"alpha_per_expert", 160},
                                {"alpha_ring_per_expert", 170},
                                {"alpha_from_global", 190},
                                {"alpha_per_k_tile", 200}});
  const Table t = table();
  const std::vector<std::string> order = {"alpha_per_k_tile",      "alpha_from_global",
                                          "alpha_ring_per_expert", "alpha_per_expert",
                                          "alpha_per_expert_n64",  "alpha_per_expert_n64_acc3"};
  ASSERT_EQ(t.rows.size(), order.size());
  for (size_t row = 0; row < order.size(); ++row) EXPECT_EQ(at(t, row, "variant"), order[row]);
  EXPECT_EQ(column("against"), (Cells{{"alpha_from_global", "alpha_per_k_tile"},
                                      {"alpha_ring_per_expert", "alpha_per_k_tile"},
                                      {"alpha_per_expert", "alpha_per_k_tile"},
                                      {"alpha_per_expert_n64_acc3", "alpha_per_expert_n64"}}));
  EXPECT_EQ(column("what it is")["alpha_from_global"], "step: alpha from global memory, 128x128");
  EXPECT_EQ(column("published us, B200"), (Cells{{"alpha_per_k_tile", "76.54"},
                                                 {"alpha_per_expert", "75.94"},
                                                 {"alpha_per_expert_n64", "62.63"}}));
}

TEST_F(DenseFc2ReportTest, WithoutItsBeforeARowHasNoSpeedUp) {
  add_dense_run(Backend::cuda, {{"alpha_per_expert_n64", 144}, {"alpha_per_k_tile", 200}});
  EXPECT_EQ(column("speed-up"), Cells{});
  EXPECT_EQ(column("against"), Cells{});
  EXPECT_EQ(column("us").size(), 2u);
}

TEST_F(DenseFc2ReportTest, FloorsNeedMeasuredCeilings) {
  add_the_pr();
  EXPECT_EQ(column("% of floor"), Cells{});
  measure_ceilings({{"read_bytes_per_s", 4e12}, {"fp8_flops", 1.5e15}});
  EXPECT_EQ(column("dense floor us: memory")["alpha_per_expert"], "119.57")
      << "469.76 MB of b, 8.39 of a, 0.13 of alpha; without what is written";
  EXPECT_EQ(column("dense floor us: products")["alpha_per_expert"], "80.17");
  EXPECT_EQ(column("sparse floor us")["alpha_per_expert"], "117.5") << "470 MB";
  EXPECT_EQ(column("% of floor")["alpha_per_expert"], "74.7");
  EXPECT_EQ(column("% of floor")["sparse_rows"], "117.5");
  measure_ceilings({{"read_bytes_per_s", 8e12}});
  EXPECT_EQ(column("% of floor")["alpha_per_expert"], "50.1") << "products";
  EXPECT_EQ(column("% of floor")["sparse_rows"], "58.8");
}

TEST_F(DenseFc2ReportTest, TheDenseFloorHasScaleFactorsOfBlocks) {
  measure_ceilings({{"read_bytes_per_s", 5e8}});
  add_the_pr({{"hidden", "7176"}, {"scales", "block"}});
  // 470,286,336 bytes of b and 57 x 512 factors, 8,388,608 of a and 128 x 512 factors, alpha.
  EXPECT_EQ(column("dense floor us: memory")["alpha_per_expert"], "958370");
  EXPECT_EQ(column("dense floor us: products"), Cells{});
  EXPECT_EQ(column("sparse floor us")["alpha_per_expert"], "940000");
}

TEST_F(DenseFc2ReportTest, PublishedFiguresStandByTheirTokensAndTile) {
  add_the_pr();
  EXPECT_EQ(column("published us, B200"), (Cells{{"alpha_per_k_tile", "76.54"},
                                                 {"alpha_per_expert", "75.94"},
                                                 {"alpha_per_k_tile_n64", "65.8"},
                                                 {"alpha_per_expert_n64", "62.63"},
                                                 {"alpha_per_expert_cluster2", "70.22"}}));
  EXPECT_EQ(column("published speed-up"),
            (Cells{{"alpha_per_expert", "1.01x"}, {"alpha_per_expert_n64", "1.05x"}}));
  EXPECT_EQ(column("published TFLOP/s"), (Cells{{"alpha_per_k_tile", "1571"},
                                                {"alpha_per_expert", "1584"},
                                                {"alpha_per_k_tile_n64", "1828"},
                                                {"alpha_per_expert_n64", "1920"},
                                                {"alpha_per_expert_cluster2", "1713"}}));
  add_the_pr({{"tokens", "192"}});
  EXPECT_EQ(column("published us, B200", 2),
            (Cells{{"alpha_per_k_tile_n64", "127.81"}, {"alpha_per_expert_n64", "111.89"}}));
}

TEST_F(DenseFc2ReportTest, PublishedFiguresStandByNoOtherShape) {
  add_the_pr({{"hidden", "3584"}});
  add_the_pr({{"inter", "128"}});
  add_the_pr({{"experts", "128"}, {"inter", "512"}});
  EXPECT_EQ(column("published us, B200", 1), Cells{});
  EXPECT_EQ(column("published us, B200", 2), Cells{});
  EXPECT_EQ(column("published us, B200", 3)["alpha_per_expert_n64"], "62.63") << "the same K";
}

TEST_F(DenseFc2ReportTest, AHostComparesWithItsYardstickAndOtherOperatorsStayOut) {
  add_dense_run(Backend::host, {{"alpha_per_k_tile", 8}, {"alpha_per_expert", 4}});
  EXPECT_EQ(column("speed-up")["alpha_per_expert"], "2.000x");
  EXPECT_EQ(column("what it is")["alpha_per_expert"], "after") << "it has no such tile";
  EXPECT_EQ(column("published us, B200"), Cells{});
  add_moe_run(Backend::cuda, {{"moe_down", "gather", "64", {8}}});
  EXPECT_EQ(table(2).rows.size(), 0u);
}

TEST_F(DenseFc2ReportTest, SpeedupComparesTilesOfOneShape) {
  add_the_pr();
  Cells befores = ReportTest::column(report("speedup"), "before");
  EXPECT_EQ(befores["alpha_per_expert_n64"], "alpha_per_k_tile_n64");
  EXPECT_EQ(befores["alpha_per_expert"], "alpha_per_k_tile");
}

class DenseCrossoverTest : public ReportTest {
 protected:
  /// Dense 150 us, sparse 100 and 10.
  std::vector<Gemm> layer() {
    return {{"dense_fc2", "alpha_per_expert", "", {160}}, {"dense_fc2", "stream_k", "", {150}},
            {"dense_fc2", "cublaslt_plain", "", {1}},     {"moe_down", "gather", "64", {120}},
            {"moe_down", "resident_rows", "16", {100}},   {"moe_down", "gather", "16", {110}},
            {"moe_sum", "sum_per_token", "", {12}},       {"moe_sum", "sum_vectorised", "", {10}}};
  }
  /// A run of one process, each case with one variant of 10 us, of any name or that of `variant`.
  void add_cases(const std::vector<std::pair<std::string, Cells>>& cases) {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(Backend::cuda));
    const int64_t process = store.begin_process(run, 0, 0);
    for (const auto& [op, params] : cases) {
      Case c{"s", "r1-tp8", op, params, {}};
      c.params.insert({{"tokens", "64"},
                       {"experts", "256"},
                       {"topk", "8"},
                       {"inter", "256"},
                       {"hidden", "7168"},
                       {"launch", "graph"},
                       {"dtype", "fp8"}});
      const auto variant = c.params.extract("variant");
      add(store, process, c, variant ? variant.mapped() : "any", {10000}, 1);
    }
    store.end_run(run, "complete");
  }
  Table table(int64_t run = 1) { return report("dense-crossover", run); }
};

TEST_F(DenseCrossoverTest, TheFastestOfEachAreCompared) {
  add_moe_run(Backend::cuda, layer());
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 1u);
  const Cells expected = {
      {"model", "r1-tp8"},        {"tokens", "8192"},       {"routing", "shared:zipf:0.67"},
      {"dense", "stream_k"},      {"dense us", "149.99"},   {"moe_down", "resident_rows"},
      {"moe_down us", "100"},     {"moe_sum us", "10"},     {"sparse us", "110"},
      {"dense / sparse", "1.36"}, {"95 % CI", "1.36–1.36"}, {"faster", "sparse"}};
  for (const auto& [name, cell] : expected) EXPECT_EQ(at(t, 0, name), cell) << name;
}

TEST_F(DenseCrossoverTest, TheDenseFormCanBeFaster) {
  auto gemms = layer();
  gemms[1].launches = {55};
  add_moe_run(Backend::cuda, gemms);
  EXPECT_EQ(at(table(), 0, "dense / sparse"), "0.50");
  EXPECT_EQ(at(table(), 0, "faster"), "dense");
  gemms[1].launches = {110};
  add_moe_run(Backend::cuda, gemms);
  EXPECT_EQ(at(table(2), 0, "faster"), "~");
}

TEST_F(DenseCrossoverTest, SparseRowsHasAColumnOfItsOwnWhereItRanWithTheRouting) {
  auto gemms = layer();
  gemms.push_back({"dense_fc2", "sparse_rows", "", {70}});
  add_moe_run(Backend::cuda, gemms);
  EXPECT_EQ(at(table(), 0, "dense"), "stream_k");
  EXPECT_EQ(at(table(), 0, "sparse_rows us"), "") << "of another form of scale factors";
  add_moe_run(Backend::cuda, gemms, {{"scales", "tensor"}});
  EXPECT_EQ(at(table(2), 0, "dense us"), "149.99");
  EXPECT_EQ(at(table(2), 0, "sparse_rows us"), "70");
  const Cells dense = {{"routing", "uniform"}, {"scales", "tensor"}};
  Cells sparse = dense;
  sparse["variant"] = "sparse_rows";
  add_cases({{"dense_fc2", dense},
             {"dense_fc2", sparse},
             {"moe_down", {{"routing", "uniform"}}},
             {"moe_down", {{"routing", "zipf:0.67"}}},
             {"moe_sum", {}}});
  EXPECT_EQ(at(table(3), 0, "sparse_rows us"), "10");
  EXPECT_EQ(at(table(3), 1, "sparse_rows us"), "") << "of another routing";
}

TEST_F(DenseCrossoverTest, OnlyTheSameLayerIsCompared) {
  const auto gemms = layer();
  const std::vector<Gemm> dense(gemms.begin(), gemms.begin() + 4),
      sparse(gemms.begin() + 4, gemms.end());
  add_moe_run(Backend::cuda, dense);
  add_moe_run(Backend::cuda, sparse);
  EXPECT_EQ(table(1).rows.size(), 0u);
  EXPECT_EQ(table(2).rows.size(), 0u) << "of one run";
  int64_t run = 2;
  for (const char* differs : {"tokens", "experts", "topk", "inter", "hidden", "launch"}) {
    add_cases({{"dense_fc2", {{differs, "3"}}}, {"moe_down", {}}, {"moe_sum", {}}});
    EXPECT_EQ(table(++run).rows.size(), 0u) << differs;
  }
  for (const char* differs : {"tokens", "topk", "hidden", "launch"}) {
    add_cases({{"dense_fc2", {}}, {"moe_down", {}}, {"moe_sum", {{differs, "3"}}}});
    EXPECT_EQ(table(++run).rows.size(), 0u) << differs;
  }
  add_cases({{"dense_fc2", {}}, {"moe_down", {{"dtype", "bf16"}}}, {"moe_sum", {}}});
  EXPECT_EQ(table(++run).rows.size(), 0u);
}

TEST_F(DenseCrossoverTest, ADenseCaseStandsByEveryRoutingAndFormOfScales) {
  add_cases({{"dense_fc2", {{"routing", "uniform"}, {"scales", "tensor"}}},
             {"dense_fc2", {{"routing", "uniform"}, {"scales", "block"}}},
             {"moe_down", {{"routing", "uniform"}}},
             {"moe_down", {{"routing", "zipf:0.67"}}},
             {"moe_sum", {}}});
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 4u);
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(at(t, row, "scales"), row < 2 ? "block" : "tensor");
    EXPECT_EQ(at(t, row, "routing"), row % 2 == 0 ? "uniform" : "zipf:0.67");
    EXPECT_EQ(at(t, row, "dense / sparse"), "0.50");
    EXPECT_EQ(at(t, row, "95 % CI"), "") << "of one process";
    EXPECT_EQ(at(t, row, "faster"), "~");
  }
}

}  // namespace
}  // namespace moegate::test
