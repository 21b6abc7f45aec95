// SPDX-License-Identifier: Apache-2.0
// The check of suites, and that of their negative controls.
#include "harness/campaign/runner.h"

#include <gtest/gtest.h>

#include "harness/campaign/campaign_fixture.h"

namespace moegate {
namespace {

class RunnerTest : public CampaignTest {};

TEST_F(RunnerTest, ChecksOneVariantOfEachCaseAndFactorForControls) {
  options_.worker.task = Task::controls;
  FakeProgram& program = fake_.program("");
  program.answer = [](const CaseQuestion& question) {
    CaseAnswer answer;
    if (question.spec.get("rows") == "2") answer.unsupported["fused"] = "not with two rows";
    return answer;
  };
  check_suites(options_, fake_);
  EXPECT_EQ(fake_.journal,
            (std::vector<std::string>{"start", "run fake/rows=1 fused", "run fake/rows=2 plain"}));
  fake_.journal.clear();
  program.hello.operators[0].yardstick = "plain";
  check_suites(options_, fake_);
  EXPECT_EQ(count("run fake/rows=1 plain"), 1) << "the yardstick where there is one";
  fake_.journal.clear();
  program.hello.variants[0].leeway.factor = 4;  // of fused
  check_suites(options_, fake_);
  EXPECT_EQ(fake_.journal,
            (std::vector<std::string>{"start", "run fake/rows=1 plain", "run fake/rows=1 fused",
                                      "run fake/rows=2 plain"}))
      << "one of each factor on the ceilings";
}

TEST_F(RunnerTest, CasesThatNoVariantSupportsAreNoControls) {
  options_.worker.task = Task::controls;
  options_.order_seed = 7;
  options_.deadline = Deadline(60);  // as in a night, which draws the order
  fake_.program("").answer = [](const CaseQuestion& question) {
    CaseAnswer answer;
    if (question.spec.get("rows") == "2") answer.unsupported = {{"fused", "no"}, {"plain", "no"}};
    return answer;
  };
  check_suites(options_, fake_);
  EXPECT_EQ(fake_.journal, (std::vector<std::string>{"start", "run fake/rows=1 fused"}));
}

}  // namespace
}  // namespace moegate
