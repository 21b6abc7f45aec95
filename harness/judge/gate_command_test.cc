// SPDX-License-Identifier: Apache-2.0
// moegate gate and compare on synthetic stores: which runs meet which baseline, candidates, flags.
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/baseline/find_baseline.h"
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

TEST_F(GateTest, WithoutBaselineNothingIsJudged) {
  add_run();
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("NO BASELINE: 0 inconclusive, 4 new")) << out_;
  EXPECT_EQ(gate({"--require-baseline"}), 22) << out_;
}

TEST_F(GateTest, ACandidateIsRecordedThenJudgedAgainst) {
  const std::string cand = (dir_ / "cand").string();
  add_run();
  EXPECT_EQ(gate({"--candidate", cand}), 0) << out_;
  EXPECT_TRUE(says("recorded as candidate")) << out_;
  EXPECT_TRUE(fs::exists(dir_ / "cand" / "nvidia-h200" / "nightly.tsv"));
  add_run([](Row& row, int) {
    row.result.span_ns *= row.variant == "fused" ? 1.1 : 1;
    return true;
  });
  EXPECT_EQ(gate({"--candidate", cand}), 10) << out_;
  EXPECT_TRUE(says("candidate, not blessed")) << out_;
  add_run();
  EXPECT_EQ(gate({"--candidate", cand}), 0) << out_;
  EXPECT_EQ(gate({"--candidate", cand, "--require-baseline"}), 22) << out_;
}

TEST_F(GateTest, AnotherEnvironmentThanTheBaselinesIsNamed) {
  const auto with_triton = [](const std::string& version) {
    return EnvironmentItems{{"package", "triton", version, ""},
                            {"variable", "PYTHONPATH", "/home/" + version, "", false}};
  };
  const std::string line = "environment: triton 3.5.1 -\\> 3.6.0; 4 of 4 rows ran other code\n";
  environment_ = with_triton("3.5.1");
  bless_run(add_run());
  EXPECT_EQ(read_file(baseline()).find("/home/"), std::string::npos) << "whose folder it is";
  add_run();
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_FALSE(says("environment:")) << out_;
  environment_ = with_triton("3.6.0");
  add_run();
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says(line)) << out_;
  EXPECT_EQ(gate({"--against", "1"}), 0) << out_;
  EXPECT_TRUE(says(line)) << out_;
  EXPECT_EQ(gate({"--format", "json"}), 0) << out_;
  EXPECT_EQ(nlohmann::json::parse(out_)["environment"]["changed"].dump(),
            R"([{"base":"3.5.1","head":"3.6.0","kind":"package","name":"triton"}])");

  EXPECT_EQ(call(cmd_bless, {"--reason", "triton"}), 0) << out_;
  EXPECT_TRUE(says("4 rows, 0 changed by B0002 (ratchet)\n  triton 3.5.1 -> 3.6.0\n")) << out_;
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_FALSE(says("environment:")) << "its own\n" << out_;

  std::string older = read_file(baseline());
  const size_t at = older.find("#environment");
  older.erase(at, older.find('\n', at) + 1 - at);
  std::ofstream(baseline(), std::ios::binary) << older;
  record_baseline();
  environment_ = with_triton("3.7.0");
  add_run();
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_FALSE(says("environment:")) << "nobody knows the baseline's\n" << out_;
}

TEST_F(GateTest, ACandidateKnowsTheEnvironmentOfItsRows) {
  const Args args = {"--candidate", (dir_ / "cand").string()};
  for (const char* version : {"3.5.1", "3.6.0"}) {
    environment_ = {{"package", "triton", version, ""}};
    add_run();
    EXPECT_EQ(gate(args), 0) << out_;
  }
  EXPECT_TRUE(says("environment: triton 3.5.1 -\\> 3.6.0; ")) << out_;
}

TEST_F(GateTest, AStoreDoesNotChooseWhereACandidateIsWritten) {
  const std::string candidates = (dir_ / "cand").string();
  const int64_t run = add_run();
  const fs::path elsewhere = dir_ / "elsewhere";
  for (const std::string& sql :
       {"UPDATE run_case SET suite = '" + (elsewhere / "x").string() + "'",
        std::string("UPDATE run_case SET suite = '../../elsewhere/x'"),
        std::string("UPDATE run_case SET suite = 'nightly'; UPDATE device SET class = "
                    "'../elsewhere'")}) {
    Database(db_, SQLITE_OPEN_READWRITE).execute(sql);
    EXPECT_EQ(gate({"--candidate", candidates}), 30) << sql << out_;
    EXPECT_TRUE(says("is no name of a file")) << out_;
    EXPECT_EQ(call(cmd_bless, {"--run", std::to_string(run), "--reason", "x"}), 30) << out_;
    EXPECT_FALSE(fs::exists(elsewhere)) << sql;
    EXPECT_FALSE(fs::exists(dir_ / "cand")) << sql;
  }
  for (const char* name : {"", ".", "..", "../x", "/x", "a/b", ".x", "a\nb"}) {
    EXPECT_THROW(baseline_path("folder", name, "suite"), Error) << name;
    EXPECT_THROW(baseline_path("folder", "class", name), Error) << name;
  }
  EXPECT_EQ(baseline_path("folder", "class", "a suite"), "folder/class/a suite.tsv");
}

TEST_F(GateTest, ABrokenRunBecomesNoCandidate) {
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::timeout;
    return true;
  });
  EXPECT_EQ(gate({"--candidate", (dir_ / "cand").string()}), 13) << out_;
  EXPECT_TRUE(says("not recorded")) << out_;
  EXPECT_FALSE(fs::exists(dir_ / "cand"));
}

TEST_F(GateTest, OtherConditionsAreRefused) {
  bless_run(add_run());
  info_.flush = "write";
  add_run();
  EXPECT_EQ(gate(), 2);
  EXPECT_TRUE(says("flush is 'read', the run's is 'write'")) << out_;
  info_.flush = "read";
  info_.timer = "event";
  add_run();
  EXPECT_EQ(gate(), 21);
  EXPECT_TRUE(says("timer is 'cupti', the run's is 'event'")) << out_;
  info_.timer = "cupti";
  info_.device.klass = "nvidia-b200";
  add_run();
  EXPECT_EQ(gate({"--baselines", baseline().string()}), 2);
  EXPECT_TRUE(says("class")) << out_;
  EXPECT_EQ(gate(), 0) << "another class has no baseline: " << out_;
}

TEST_F(GateTest, PrintsJsonAndCsv) {
  bless_run(add_run());
  EXPECT_EQ(gate({"--format", "json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["judged"], 4);
  EXPECT_EQ(gate({"--format", "csv"}), 0);
  EXPECT_EQ(out_.rfind("outcome,suite,case,variant", 0), 0u) << out_;
}

TEST_F(GateTest, BadFlagsAreUsageErrors) {
  add_run();
  for (const Args& args : {Args{"--fail-on", "speed"},
                           {"--margin", "0.01"},
                           {"--margin", "5%"},
                           {"--format", "xml"},
                           {"--run", "none"},
                           {"--baselines", "/none"},
                           {"--colour", "red"}}) {
    EXPECT_EQ(gate(args), 2) << args[0] << ": " << out_;
  }
  fs::remove(db_);
  EXPECT_EQ(gate(), 30) << out_;
  EXPECT_FALSE(fs::exists(db_));
}

TEST_F(GateTest, NoVerdictFileWithoutAVerdict) {
  add_run();
  const std::string verdict = (dir_ / "v.json").string();
  EXPECT_EQ(gate({"--out", verdict, "--run", "none"}), 2);
  EXPECT_FALSE(fs::exists(verdict));
  EXPECT_EQ(gate({"--out", (dir_ / "no" / "v.json").string()}), 2) << out_;
}

TEST_F(GateTest, ComparesTwoRuns) {
  add_run();
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.span_ns *= 1.1;
    return true;
  });
  add_run([](Row& row, int) { return !is(row, "8", "fused"); });
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "2"}), 10) << out_;
  EXPECT_TRUE(says("against run 1 'night'")) << out_;
  EXPECT_EQ(call(cmd_gate, {"--against", "2", "--run", "1"}), 0) << out_;
  EXPECT_TRUE(says("1 improved")) << out_;
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "3"}), 13) << out_;
  EXPECT_EQ(call(cmd_gate, {"--against", "3", "--run", "1", "--format", "csv"}), 0) << out_;
  EXPECT_TRUE(says("new,nightly")) << out_;
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "1"}), 2);
  info_.timer = "event";
  add_run();
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "4"}), 21) << out_;
}

TEST_F(GateTest, ARunThatIsNotCompleteIsJudgedAndNeverPasses) {
  add_run();
  add_run([](Row& row, int) { return !is(row, "8", "fused"); }, "interrupted");
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "2"}), 130) << out_;
  EXPECT_TRUE(says("INTERRUPTED (exit 130): 1 inconclusive, 3 pass of 4 rows")) << out_;
  EXPECT_TRUE(says("1 not judged")) << out_;
  EXPECT_TRUE(says("tokens=8")) << out_;
  EXPECT_EQ(call(cmd_gate, {"--against", "2", "--run", "1"}), 0) << "the head is: " << out_;
  EXPECT_TRUE(says("1 new")) << out_;
}

TEST_F(GateTest, ABrokenBaseRunPromisesNothing) {
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::crashed;
    return true;
  });
  add_run();
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "2"}), 0) << out_;
  EXPECT_TRUE(says("1 new")) << out_;
}

}  // namespace
}  // namespace moegate::test
