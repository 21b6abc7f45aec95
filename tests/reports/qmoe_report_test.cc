// SPDX-License-Identifier: Apache-2.0
// The reports on the int4 operators, whose variants are not all compared with the same one.
#include <map>

#include "harness/store/report_fixture.h"
#include "harness/store/sqlite.h"

namespace moegate::test {
namespace {

class QmoeReportTest : public ReportTest {
 protected:
  /// The routes of the PR and one more, with speed-ups that no two share.
  void add_cuda_run() {
    add_qmoe_run(Backend::cuda, {{"single_fp16_acc", {14}, 10},
                                 {"split_k2_fp16_acc", {12, 4}, 0},
                                 {"single_fp32_acc", {21}, 12},
                                 {"split_k2_fp32_acc", {17.5, 2.5}, 0},
                                 {"stream_imma", {8}, 5}});
  }
  /// The cells of a column by the variant of their rows.
  std::map<std::string, std::string> column(const Table& table, const std::string& name,
                                            const std::string& of = "variant") {
    std::map<std::string, std::string> cells;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      cells[at(table, row, of)] = at(table, row, name);
    }
    return cells;
  }
};

using Cells = std::map<std::string, std::string>;

TEST_F(QmoeReportTest, SpeedupComparesWithTheSameAccumulator) {
  add_cuda_run();
  const Table t = report("speedup");
  ASSERT_EQ(t.rows.size(), 8u) << "three afters of FC1 and one of FC2, cold and warm";
  EXPECT_EQ(column(t, "before"), (Cells{{"split_k2_fp16_acc", "single_fp16_acc"},
                                        {"split_k2_fp32_acc", "single_fp32_acc"},
                                        {"stream_imma", "single_fp16_acc"}}));
  // Rows of FC1 come first, those of cold before those of warm.
  EXPECT_EQ(at(t, 0, "model"), "gpt-oss-20b-fc1");
  EXPECT_EQ(at(t, 0, "cache"), "cold");
  EXPECT_EQ(at(t, 0, "Speedup"), "0.88x");
  EXPECT_EQ(at(t, 1, "Speedup"), "1.05x");
  EXPECT_EQ(at(t, 2, "Speedup"), "1.75x");
  EXPECT_EQ(at(t, 7, "Speedup"), "2.00x");
}

TEST_F(QmoeReportTest, WhatIsMissingIsReplacedByTheNextBefore) {
  add_qmoe_run(Backend::cuda, {{"single_fp32_acc", {21}, 12}, {"stream_imma", {7}, 6}}, "bf16");
  add_qmoe_run(Backend::host, {{"single", {10}, 8}, {"expert_rows", {5}, 4}});
  EXPECT_EQ(column(report("speedup", 1), "before"), (Cells{{"stream_imma", "single_fp32_acc"}}));
  EXPECT_EQ(at(report("speedup", 1), 0, "Speedup"), "3.00x");
  EXPECT_EQ(column(report("speedup", 2), "before"), (Cells{{"expert_rows", "single"}}));
  EXPECT_EQ(at(report("speedup", 2), 0, "Speedup"), "2.00x");
}

TEST_F(QmoeReportTest, AClaimIsRepeatedOrNotOrOfAnotherGpu) {
  add_cuda_run();
  add_qmoe_run(Backend::cuda, {{"single_fp32_acc", {21.5}, 12}, {"split_k2_fp32_acc", {20}, 0}});
  const auto says = [&](int64_t run) { return column(report("claims", run), "says"); };
  EXPECT_EQ(says(1), (Cells{{"single_fp16_acc", "another GPU, faster here"},
                            {"split_k2_fp32_acc", "another GPU, faster here"}}));
  Database(db_, SQLITE_OPEN_READWRITE).execute("UPDATE device SET name = 'NVIDIA H200'");
  EXPECT_EQ(says(1), (Cells{{"single_fp16_acc", "not repeated, faster here"},
                            {"split_k2_fp32_acc", "not repeated, faster here"}}));
  EXPECT_EQ(says(2), (Cells{{"split_k2_fp32_acc", "repeated, faster here"}}));
  const Table t = report("claims");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(at(t, 1, "published"), "1.08x");
  EXPECT_EQ(at(t, 1, "before us"), "10.5") << "warm, both launches";
  EXPECT_EQ(at(t, 1, "here"), "1.05x");
  EXPECT_EQ(at(t, 1, "best here"), "stream_imma");
}

TEST_F(QmoeReportTest, ThePullRequestsTableJoinsTheLayers) {
  add_cuda_run();
  const Table t = report("pr-onnxruntime-29167");
  ASSERT_EQ(t.rows.size(), 5u) << "one per route";
  for (size_t row = 0; row < 5; ++row) EXPECT_EQ(at(t, row, "model"), "gpt-oss-20b");
  EXPECT_EQ(at(t, 0, "route"), "single_fp16_acc") << "a before, then what is compared with it";
  EXPECT_EQ(at(t, 3, "route"), "single_fp32_acc");
  const auto of_route = [&](const std::string& name) { return column(t, name, "route"); };
  EXPECT_EQ(of_route("FC1 us, cold"), (Cells{{"single_fp16_acc", "14"},
                                             {"split_k2_fp16_acc", "16"},
                                             {"single_fp32_acc", "21"},
                                             {"split_k2_fp32_acc", "20"},
                                             {"stream_imma", "8"}}));
  EXPECT_EQ(of_route("launches, cold")["split_k2_fp32_acc"], "17.50 + 2.50");
  EXPECT_EQ(of_route("launches, warm")["split_k2_fp32_acc"], "8.75 + 1.25");
  EXPECT_EQ(of_route("launches, cold")["stream_imma"], "") << "one launch has no parts";
  EXPECT_EQ(of_route("FC1 speed-up, cold"), (Cells{{"single_fp16_acc", ""},
                                                   {"split_k2_fp16_acc", "0.88x (0.88–0.88)"},
                                                   {"single_fp32_acc", ""},
                                                   {"split_k2_fp32_acc", "1.05x (1.05–1.05)"},
                                                   {"stream_imma", "1.75x (1.75–1.75)"}}));
  EXPECT_EQ(of_route("FC2 us, warm"), (Cells{{"single_fp16_acc", "5"},
                                             {"split_k2_fp16_acc", "5"},
                                             {"single_fp32_acc", "6"},
                                             {"split_k2_fp32_acc", "6"},
                                             {"stream_imma", "2.5"}}))
      << "FC2 is never split: a split route has that of its before";
  EXPECT_EQ(of_route("FC2 speed-up, warm")["stream_imma"], "2.00x (2.00–2.00)");
  EXPECT_EQ(of_route("FC2 speed-up, warm")["split_k2_fp32_acc"], "");
}

TEST_F(QmoeReportTest, AWholeLayerStandsBesideThePublishedOperator) {
  add_qmoe_run(Backend::cuda, {{"single_fp16_acc", {14}, 10, 30},
                               {"split_k2_fp16_acc", {12, 4}, 0, 32},
                               {"single_fp32_acc", {21}, 12, 40},
                               {"stream_imma", {8}, 5, 20, "stream"}});
  const Table t = report("pr-onnxruntime-29167");
  ASSERT_EQ(t.rows.size(), 4u) << "one per route";
  const auto of_route = [&](const std::string& name) { return column(t, name, "route"); };
  EXPECT_EQ(of_route("layer us, cold"), (Cells{{"single_fp16_acc", "30"},
                                               {"split_k2_fp16_acc", "32"},
                                               {"single_fp32_acc", "40"},
                                               {"stream_imma", "20"}}));
  EXPECT_EQ(of_route("layer us, warm")["stream_imma"], "10");
  EXPECT_EQ(of_route("layer speed-up, warm"), (Cells{{"single_fp16_acc", ""},
                                                     {"split_k2_fp16_acc", "0.94x (0.94–0.94)"},
                                                     {"single_fp32_acc", ""},
                                                     {"stream_imma", "1.50x (1.50–1.50)"}}));
  EXPECT_EQ(of_route("published operator us, hot")["single_fp32_acc"], "71.31");
  EXPECT_EQ(of_route("FC1 us, cold")["stream_imma"], "8") << "the layer is no FC1";
  EXPECT_EQ(of_route("FC2 us, cold")["stream_imma"], "5") << "nor FC2";
}

TEST_F(QmoeReportTest, OnAHostTheChainIsTheLayerOfSingle) {
  add_qmoe_run(Backend::host, {{"single", {10}, 8, 20, "chain"}, {"expert_rows", {5}, 4, 10}});
  const Table t = report("pr-onnxruntime-29167");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(column(t, "layer us, cold", "route"), (Cells{{"single", "20"}, {"expert_rows", "10"}}));
  EXPECT_EQ(column(t, "layer speed-up, warm", "route")["expert_rows"], "2.00x (2.00–2.00)");
}

TEST_F(QmoeReportTest, PublishedFiguresStandByTheSameCaseOnly) {
  add_cuda_run();
  add_qmoe_run(Backend::cuda, {{"single_fp32_acc", {21}, 12}}, "bf16");
  const Table t = report("pr-onnxruntime-29167");
  EXPECT_EQ(column(t, "published FC1 us, hot", "route"),
            (Cells{{"single_fp16_acc", "13.93"},
                   {"split_k2_fp16_acc", ""},
                   {"single_fp32_acc", "21.42, 21.57"},
                   {"split_k2_fp32_acc", "17.59 + 2.39"},
                   {"stream_imma", ""}}));
  EXPECT_EQ(at(t, 0, "published FC2 us, hot"), "10.14");
  EXPECT_EQ(at(report("pr-onnxruntime-29167", 2), 0, "published FC1 us, hot"), "");
}

}  // namespace
}  // namespace moegate::test
