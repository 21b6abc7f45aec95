// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/step_class.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moegate::test {
namespace {

StepQuestion question_of_step() {
  StepPoint point{"c0de",  "abc", "nightly", "{\"experts\":8}", "", "per_token@1",
                  "GPU-1", "580", 1980};
  return {point, point, std::log(1.1)};
}

std::string classified(const StepQuestion& q) {
  const ClassifiedStep step = classify_step(q);
  return std::string(name_of(step.kind)) + ": " + step.why;
}

TEST(StepClass, NothingChanged) {
  EXPECT_EQ(classified(question_of_step()), "noise: nothing that is recorded changed");
}

TEST(StepClass, TheBenchmarkComesFirst) {
  StepQuestion q = question_of_step();
  q.after.code = "other";
  q.after.yardstick = "per_token@2";
  EXPECT_EQ(classified(q), "benchmark: yardstick per_token@1 -> per_token@2");
  q.after.suite = "smoke";
  EXPECT_EQ(classified(q), "benchmark: suite nightly -> smoke");
  q.after.sets = "2";
  EXPECT_EQ(classified(q), "benchmark: problem sets all -> 2");
  q = question_of_step();
  q.after.facts = "{\"experts\":9}";
  EXPECT_EQ(classify_step(q).kind, StepClass::benchmark);
  q.before.facts = "";
  EXPECT_EQ(classify_step(q).kind, StepClass::noise) << "what is unknown did not change";
}

TEST(StepClass, UnchangedRowsThatMoveAlikeAreTheMachine) {
  StepQuestion q = question_of_step();
  q.after.code = "other";
  q.after.commit = "def";
  q.alike = {0.09, 0.08, 0.01};
  EXPECT_EQ(classified(q), "machine: 3 other rows, whose code did not change, moved by +8.3 %");
  for (const std::vector<double>& alike :
       {std::vector<double>{0.09, 0.08}, {0.02, 0.01, 0.03}, {-0.09, -0.08, -0.1}}) {
    q.alike = alike;
    EXPECT_EQ(classified(q), "code: what is launched changed") << alike[0];
  }
}

TEST(StepClass, CodeIsItsHashOrElseItsCommit) {
  StepQuestion q = question_of_step();
  q.after.commit = "def";
  EXPECT_EQ(classify_step(q).kind, StepClass::noise) << "the same code at another commit";
  q.after.code = "";
  EXPECT_EQ(classified(q), "code: the commit changed; what was launched is not known");
}

TEST(StepClass, OtherCodeOfTheSameCommitIsTheEnvironments) {
  StepQuestion q = question_of_step();
  q.after.code = "other";
  const std::string but = "what is launched changed, the commit did not; ";
  EXPECT_EQ(classified(q), "environment: " + but + "environment not stored");
  q.environment = {{"package", "triton", "3.5.1", "3.6.0"},
                   {"variable", "OMP_DYNAMIC", "unset", "1"}};
  EXPECT_EQ(classified(q), "environment: " + but + "triton 3.5.1 -> 3.6.0, OMP_DYNAMIC unset -> 1");
  q.environment->clear();
  EXPECT_EQ(classified(q), "code: " + but + "nor did the environment") << "nobody knows why";
  q.environment = {{"package", "triton", "3.5.1", "3.6.0"}};
  for (const char* commit : {"", "def", "abc+dirty"}) {
    q.after.commit = commit;
    EXPECT_EQ(classified(q), "code: what is launched changed") << commit;
  }
  q.before.commit = "abc+dirty";
  EXPECT_EQ(classify_step(q).kind, StepClass::code) << "whatever was not committed";
}

TEST(StepClass, TheMachineOfTheSameCode) {
  StepQuestion q = question_of_step();
  q.after.sm_mhz = 1740;
  EXPECT_EQ(classified(q), "machine: clock 1980 -> 1740 MHz");
  q.after.driver = "590";
  EXPECT_EQ(classified(q), "machine: driver 580 -> 590");
  q.after.code = "other";
  q.after.commit = "def";
  EXPECT_EQ(classify_step(q).kind, StepClass::code);
}

}  // namespace
}  // namespace moegate::test
