// SPDX-License-Identifier: Apache-2.0
// What a kernel does to its process stays there: its output, its children, its exit handlers. And
// the judge, which has no kernels at all.

#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class IsolationTest : public ProgramTest {
 protected:
  IsolationTest() {
    write("quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[small]\ntokens = 3\n");
  }
  static std::string quick(const std::string& command) {
    return command +
           " --suite ./quick.suite --device host --db r.sqlite --min-samples 10 --max-samples 20 "
           "--budget 50ms ";
  }
  static std::string quick_ab() { return quick("ab") + "--rounds 2,2,0 --fail-on accuracy "; }
  Outcome judge(const std::string& arguments) const {
    return shell(program() + "-judge " + arguments);
  }
};

TEST_F(IsolationTest, AnExitHandlerOfAKernelsFileHasNotTheLastWord) {
  EXPECT_EQ(saboteur("exit-handler", "run --suite none").exit, 2);
  EXPECT_EQ(saboteur("exit-handler", quick("run") + "--rounds 1 --filter nothing").exit, 13);
}

TEST_F(IsolationTest, WhatAKernelPrintsIsNoOutputOfTheTool) {
  const Outcome outcome =
      saboteur("print", quick_ab() + "--base variant=saboteur --head variant=fused --format json");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("{")) << outcome.out.substr(0, 80);
  EXPECT_NE(outcome.err.find("a kernel says hello"), std::string::npos);
}

TEST_F(IsolationTest, AKernelThatClosesThePipeIsNamedForIt) {
  const Outcome outcome = saboteur("close", quick("run") + "--rounds 1 --variant saboteur");
  EXPECT_EQ(outcome.exit, 13) << outcome.err;
  EXPECT_NE(query("r.sqlite", "SELECT why FROM result").find("closed its pipe"), std::string::npos);
}

TEST_F(IsolationTest, AChildThatAKernelLeftBehindEndsWithItsWorker) {
  EXPECT_EQ(saboteur("fork", quick("run") + "--rounds 1 --variant saboteur").exit, 0);
  EXPECT_NE(kill(std::stoi(read("child")), 0), 0);
}

TEST_F(IsolationTest, TheJudgeHasNoKernelsAndJudgesOthers) {
  EXPECT_EQ(judge("list kernels --format csv").out.find("topk_sort"), std::string::npos);
  const std::string sides = "--base program=" + sabotaged("none") + " --head program=";
  const Outcome same = judge(quick_ab() + sides + sabotaged("none"));
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  const Outcome wrong = judge(quick_ab() + sides + sabotaged("scale") + " --out v.json");
  EXPECT_EQ(wrong.exit, 11) << wrong.out << wrong.err;
  EXPECT_NE(read("v.json").find("\n \"exit\": 11,"), std::string::npos)
      << "as ci/run-judge reads it";
}

TEST_F(IsolationTest, TheJudgeMeasuresWithTheProgramBesideIt) {
  EXPECT_EQ(judge(quick("run") + "--rounds 1 --variant fused").exit, 0);
  EXPECT_EQ(query("r.sqlite", "SELECT count(*) FROM result WHERE status IN ('ok', 'noisy')"), "1");
  const Outcome alone = shell("cp " + program() + "-judge . && ./moegate-judge " + quick("run"));
  EXPECT_EQ(alone.exit, 2);
  EXPECT_NE(alone.err.find("has no kernels"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace moegate::test
