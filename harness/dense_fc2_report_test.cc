// SPDX-License-Identifier: Apache-2.0
// The report of the pull request on FC2 as one dense GEMM.
#include <map>

#include "harness/report_fixture.h"

namespace moegate {
namespace {

class DenseFc2ReportTest : public ReportTest {
 protected:
  using Cells = std::map<std::string, std::string>;

  void add_the_pr(const Cells& params = {}) {
    add_dense_run(Backend::cuda,
                  {{"sparse_rows", 100},
                   {"alpha_per_expert_cluster2", 150},
                   {"alpha_per_expert", 160},
                   {"alpha_per_k_tile", 200}},
                  params);
  }
  Table table(int64_t run = 1) { return report("pr-tensorrt-llm-12686", run); }
  Cells column(const std::string& name, int64_t run = 1) {
    const Table t = table(run);
    Cells cells;
    for (size_t row = 0; row < t.rows.size(); ++row) {
      cells[at(t, row, "variant")] = at(t, row, name);
    }
    return cells;
  }
};

TEST_F(DenseFc2ReportTest, TheBeforeIsFirstAndAllOthersAreJudgedByIt) {
  add_the_pr();
  const Table t = table();
  ASSERT_EQ(t.rows.size(), 4u);
  const std::vector<std::string> order = {"alpha_per_k_tile", "alpha_per_expert",
                                          "alpha_per_expert_cluster2", "sparse_rows"};
  for (size_t row = 0; row < 4; ++row) EXPECT_EQ(at(t, row, "variant"), order[row]);
  EXPECT_EQ(at(t, 0, "model"), "r1-tp8");
  EXPECT_EQ(at(t, 0, "tokens"), "128");
  EXPECT_EQ(column("us"), (Cells{{"alpha_per_k_tile", "199.99"},
                                 {"alpha_per_expert", "159.99"},
                                 {"alpha_per_expert_cluster2", "149.99"},
                                 {"sparse_rows", "100"}}));
  EXPECT_EQ(column("speed-up"), (Cells{{"alpha_per_k_tile", ""},
                                       {"alpha_per_expert", "1.250x"},
                                       {"alpha_per_expert_cluster2", "1.333x"},
                                       {"sparse_rows", "2.000x"}}));
  EXPECT_EQ(column("95 % CI")["alpha_per_expert"], "1.250–1.250");
  EXPECT_EQ(column("TFLOP/s")["alpha_per_k_tile"], "601.3") << "120.26 GFLOP in 200 us";
}

TEST_F(DenseFc2ReportTest, FloorsNeedMeasuredCeilings) {
  add_the_pr();
  EXPECT_EQ(column("% of floor")["alpha_per_expert"], "");
  Store::open(db_, Store::Mode::update)
      .set_ceilings(info(Backend::cuda).device,
                    {{"read_bytes_per_s", 4e12}, {"fp8_flops", 1.5e15}, {"bf16_flops", 8e14}});
  EXPECT_EQ(column("floor us: memory")["alpha_per_expert"], "120") << "without what is written";
  EXPECT_EQ(column("floor us: products")["alpha_per_expert"], "80.17");
  EXPECT_EQ(column("% of floor")["alpha_per_expert"], "75");
}

TEST_F(DenseFc2ReportTest, PublishedFiguresStandByTheirTokens) {
  add_the_pr();
  add_the_pr({{"tokens", "192"}});
  EXPECT_EQ(column("published us, B200: 128x128"), (Cells{{"alpha_per_k_tile", "76.54"},
                                                          {"alpha_per_expert", "75.94"},
                                                          {"alpha_per_expert_cluster2", ""},
                                                          {"sparse_rows", ""}}));
  EXPECT_EQ(column("speed-up, 128x128")["alpha_per_expert"], "1.01x");
  EXPECT_EQ(column("speed-up, 128x64")["alpha_per_expert"], "1.05x");
  EXPECT_EQ(column("speed-up, 128x64")["alpha_per_k_tile"], "");
  EXPECT_EQ(column("published us, B200: 256x128 of two CTAs")["alpha_per_expert_cluster2"],
            "70.22");
  EXPECT_EQ(column("published TFLOP/s, best tile"), (Cells{{"alpha_per_k_tile", "1828"},
                                                           {"alpha_per_expert", "1920"},
                                                           {"alpha_per_expert_cluster2", "1713"},
                                                           {"sparse_rows", ""}}));
  EXPECT_EQ(column("published us, B200: 128x128", 2)["alpha_per_expert"], "");
  EXPECT_EQ(column("published us, B200: 128x64", 2)["alpha_per_expert"], "111.89");
  EXPECT_EQ(column("speed-up, 128x64", 2)["alpha_per_expert"], "1.14x");
}

TEST_F(DenseFc2ReportTest, PublishedFiguresStandByNoOtherShape) {
  add_the_pr({{"hidden", "3584"}});
  add_the_pr({{"inter", "128"}});
  add_the_pr({{"experts", "128"}, {"inter", "512"}});
  EXPECT_EQ(column("published us, B200: 128x64", 1)["alpha_per_expert"], "");
  EXPECT_EQ(column("published us, B200: 128x64", 2)["alpha_per_expert"], "");
  EXPECT_EQ(column("published us, B200: 128x64", 3)["alpha_per_expert"], "62.63") << "the same K";
}

TEST_F(DenseFc2ReportTest, AHostComparesWithItsYardstickAndOtherOperatorsStayOut) {
  add_dense_run(Backend::host, {{"alpha_per_k_tile", 8}, {"alpha_per_expert", 4}});
  EXPECT_EQ(column("speed-up")["alpha_per_expert"], "2.000x");
  add_moe_run(Backend::cuda, {{"moe_down", "gather", "64", {8}}});
  EXPECT_EQ(table(2).rows.size(), 0u);
}

}  // namespace
}  // namespace moegate
