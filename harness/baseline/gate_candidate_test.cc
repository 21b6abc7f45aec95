// SPDX-License-Identifier: Apache-2.0
// Candidates and blessings take only rows that were measured on a quiet machine, and a gate that
// compared nothing does not say that it passed.
#include <fstream>

#include <nlohmann/json.hpp>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

using Change = std::function<bool(Row&, int)>;

/// Every process of these rows had to share its cores; no `tokens`: of all rows.
Change disturbed(const std::string& tokens = "") {
  return [tokens](Row& row, int) {
    if (!tokens.empty() && row.tokens != tokens) return true;
    row.result.status = Status::noisy;
    row.result.why = "the machine was busy";
    return true;
  };
}

class CandidateTest : public GateTest {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    info_.device.backend = Backend::host;
    info_.timer = "clock";
  }
  int gate_candidate(Args more = {}) {
    more.insert(more.end(), {"--candidate", (dir_ / "cand").string()});
    return gate(std::move(more));
  }
  bool starts(const std::string& text) const { return out_.rfind("**" + text, 0) == 0; }
  fs::path candidate() const { return dir_ / "cand" / "nvidia-h200" / "nightly.tsv"; }
};

TEST_F(CandidateTest, ADisturbedRunBecomesNone) {
  add_run(disturbed());
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("NO BASELINE: 0 inconclusive, 4 new of 4 rows")) << out_;
  EXPECT_TRUE(says("not recorded as candidate: 4 of 4 measured rows are too noisy")) << out_;
  EXPECT_FALSE(fs::exists(dir_ / "cand"));
  add_run();
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("NO BASELINE")) << out_;
  EXPECT_TRUE(fs::exists(candidate()));
}

TEST_F(CandidateTest, ItGetsTheRowsThatItLacksFromALaterNight) {
  add_run(disturbed("8"));
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(says("without 2 of 4 measured rows, which are too noisy")) << out_;
  const std::string first = read_file(candidate());
  EXPECT_EQ(first.find("tokens=8"), std::string::npos) << first;
  add_run([](Row& row, int) {
    if (row.variant == "fused") row.result.ratio *= 1.03;
    return true;
  });
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("UNDECIDED: 0 inconclusive, 2 new (not judged), 1 identical, 1 pass")) << out_;
  EXPECT_TRUE(says("2 rows that it lacked were added")) << out_;
  const std::string second = read_file(candidate());
  const size_t rows = first.find("topk_sort/tokens=16");
  ASSERT_NE(rows, std::string::npos) << first;
  EXPECT_NE(second.find(first.substr(rows)), std::string::npos) << "its rows stay\n" << second;
  EXPECT_EQ(second.rfind(first.substr(0, rows), 0), 0u) << "its header stays\n" << second;
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(says("2 new (not judged)")) << "never against itself\n" << out_;
  EXPECT_EQ(read_file(candidate()), second);
  add_run();
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("PASS: 0 inconclusive, 2 identical, 2 pass of 4 rows")) << out_;
  EXPECT_EQ(read_file(candidate()), second);
}

TEST_F(CandidateTest, ABrokenRunAddsNothing) {
  add_run(disturbed("8"));
  gate_candidate();
  const std::string first = read_file(candidate());
  add_run([](Row& row, int) {
    if (is(row, "16", "fused")) row.result.status = Status::crashed;
    return true;
  });
  EXPECT_EQ(gate_candidate(), 13) << out_;
  EXPECT_EQ(read_file(candidate()), first);
  add_run({}, "interrupted");
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_EQ(read_file(candidate()), first);
}

TEST_F(CandidateTest, AnotherGpuAddsNothing) {
  info_.device.backend = Backend::cuda;
  add_run([](Row& row, int) { return row.tokens == "8"; });
  gate_candidate();
  const std::string first = read_file(candidate());
  info_.device.uuid = "GPU-2";
  add_run();
  EXPECT_EQ(gate_candidate(), 21) << "nothing was replayed\n" << out_;
  EXPECT_TRUE(says("2 new (not judged)")) << out_;
  EXPECT_EQ(read_file(candidate()), first);
}

TEST_F(CandidateTest, OnTheSameTwoGpusACaseMayHaveChangedItsGpu) {
  info_.device.backend = Backend::cuda;
  info_.tags[kGpusTag] = "0=GPU-1 1=GPU-2";
  add_run();
  gate_candidate();
  EXPECT_NE(read_file(candidate()).find("gpu GPU-1,GPU-2  "), std::string::npos);
  add_run();
  gate_candidate();
  EXPECT_TRUE(says("recorded on the same GPUs, but a case perhaps on another of them")) << out_;
  info_.tags.clear();
  add_run();
  gate_candidate();
  EXPECT_TRUE(says("recorded on another device: GPU-1,GPU-2")) << out_;
}

TEST_F(CandidateTest, TheSameRunAgainHasNoBaseline) {
  add_run();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(gate_candidate(), 0) << out_;
    EXPECT_TRUE(starts("NO BASELINE: 0 inconclusive, 4 new of 4 rows")) << out_;
    EXPECT_TRUE(says("recorded as candidate in")) << out_;
  }
  EXPECT_EQ(gate_candidate({"--require-baseline"}), 22) << out_;
}

TEST_F(CandidateTest, AnEmptyOneOfAnOlderVersionIsNone) {
  add_run();
  gate_candidate();
  const std::string text = read_file(candidate());
  std::ofstream(candidate()) << text.substr(0, text.find("topk_sort"));
  add_run();
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("NO BASELINE: 0 inconclusive, 4 new of 4 rows")) << out_;
  add_run();
  EXPECT_EQ(gate_candidate(), 0) << out_;
  EXPECT_TRUE(starts("PASS: 0 inconclusive, 2 identical, 2 pass of 4 rows")) << out_;
}

TEST_F(CandidateTest, BlessRefusesADisturbedRow) {
  add_run(disturbed("8"));
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  EXPECT_TRUE(says("2 of 4 measured rows are too noisy for a baseline")) << out_;
  EXPECT_TRUE(says("\n  topk_sort/tokens=8 fused: the machine was busy")) << out_;
  EXPECT_TRUE(says("run again on a quiet machine")) << out_;
  EXPECT_FALSE(fs::exists(baseline()));
  EXPECT_FALSE(fs::exists(dir_ / "baselines" / "blessings.tsv"));
}

TEST_F(CandidateTest, ABaselineWithoutARowOfTheRunLeavesItUndecided) {
  bless_run(add_run());
  const std::string text = read_file(baseline());
  std::ofstream(baseline()) << text.substr(0, text.find("topk_sort"));
  record_baseline();
  add_run();
  const fs::path verdict = dir_ / "v.json", junit = dir_ / "j.xml";
  EXPECT_EQ(gate({"--out", verdict.string(), "--out", junit.string()}), 0) << out_;
  EXPECT_TRUE(starts("UNDECIDED: 0 inconclusive, 4 new (not judged) of 4 rows")) << out_;
  EXPECT_TRUE(
      says("4 new rows were not judged: there is nothing to compare them with, for example "
           "topk_sort/tokens=8 chain.\n"))
      << out_;
  const auto v = nlohmann::json::parse(read_file(verdict));
  EXPECT_EQ(v["not_judged"], 4);
  EXPECT_EQ(v["counts"]["new"], 4);
  EXPECT_NE(read_file(junit).find("skipped=\"4\""), std::string::npos) << read_file(junit);
  EXPECT_EQ(gate({"--fail-on", "latency,inconclusive"}), 20) << out_;
}

TEST_F(CandidateTest, YardsticksAloneDecideNothing) {
  bless_run(add_run());
  add_run(disturbed());
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(starts("UNDECIDED: 2 inconclusive, 2 identical of 4 rows")) << out_;
  EXPECT_EQ(gate({"--fail-on", "latency,inconclusive"}), 20) << out_;
}

TEST_F(CandidateTest, ANewVariantBesideJudgedOnesPasses) {
  bless_run(add_run([](Row& row, int) { return !is(row, "16", "fused"); }));
  add_run();
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(starts("PASS: 0 inconclusive, 1 new (not judged), 2 identical, 1 pass of 4 rows"))
      << out_;
  EXPECT_EQ(gate({"--fail-on", "latency,inconclusive"}), 20) << out_;
}

}  // namespace
}  // namespace moegate::test
