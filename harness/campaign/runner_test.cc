// SPDX-License-Identifier: Apache-2.0
// The check of suites, and that of their negative controls.
#include "harness/campaign/runner.h"

#include <gtest/gtest.h>

#include "harness/campaign/campaign_fixture.h"

namespace moegate::test {
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

TEST_F(RunnerTest, ThreadsSleepWhereNothingIsTimedAndNobodySaysOtherwise) {
  using Variables = std::map<std::string, std::string>;
  const Variables sleep = {{"OMP_WAIT_POLICY", "passive"}};
  const auto checked = [this](Task task) {
    options_.worker.task = task;
    check_suites(options_, fake_);
    return fake_.variables;
  };
  {
    const ScopedVariable unset("OMP_WAIT_POLICY", "");
    EXPECT_EQ(checked(Task::verify), sleep);
    EXPECT_EQ(checked(Task::controls), sleep);
    EXPECT_EQ(checked(Task::profile), Variables()) << "a profiler times it";
    options_.worker.task = Task::measure;
    run_suites(options_, 0, fake_);
    EXPECT_EQ(fake_.variables, Variables()) << "of its times, and of the environment stored";
  }
  const ScopedVariable active("OMP_WAIT_POLICY", "active");
  EXPECT_EQ(checked(Task::verify), Variables());
}

TEST(TimePlan, WithoutAnEarlierRunTheBudgetTells) {
  EXPECT_EQ(time_text({120, 3, 360, 0, 0.5, 120}),
            "360 results to measure (120 rows x 3 rounds): likely 6:00 min (sampling 0.5 s each "
            "at most, and about 0.5 s to verify); a row that hangs is given up after 120 s");
  EXPECT_EQ(time_text({50, 2, 100, 0, 0.05, 120}),
            "100 results to measure (50 rows x 2 rounds): likely 30 s (sampling 0.05 s each at "
            "most, and about 0.25 s to verify); a row that hangs is given up after 120 s");
}

TEST(TimePlan, AnEarlierRunTellsBetter) {
  EXPECT_EQ(time_text({8, 3, 20, 0.25, 0.5, 120}),
            "20 results to measure (8 rows x 3 rounds): about 5 s (0.25 s each, as in an earlier "
            "run here); a row that hangs is given up after 120 s");
}

class TimePlanStoreTest : public ::testing::Test {
 protected:
  /// A run on `device` that took so many seconds for its results.
  void add(const DeviceFacts& device, int seconds, int results, const std::string& task = "measure",
           double budget_s = 0.5) {
    RunInfo info;
    info.options = fmt::format("{{\"budget_s\":{}}}", budget_s);
    info.device = device;
    info.task = task;
    info.flush = "read";
    const int64_t run = store_.begin_run(info);
    const int64_t process = store_.begin_process(run, 0, 1);
    for (int i = 0; i < results; ++i) {
      Result result;
      result.status = Status::unsupported;
      result.variant = "v" + std::to_string(i);
      store_.add_result(process, {"s", "a", "op", {{"n", "1"}}, {}}, {}, {}, result);
    }
    store_.end_run(run, "complete");
    store_.database().execute(fmt::format(
        "UPDATE run SET started = '2026-01-01T00:00:00Z', "
        "finished = strftime('%Y-%m-%dT%H:%M:%SZ', '2026-01-01', '+{} seconds') WHERE run_id = {}",
        seconds, run));
  }

  ScratchFolder folder_;
  Store store_ = Store::open((folder_ / "r.sqlite").string(), Store::Mode::write);
  const DeviceFacts gpu_ = {Backend::cuda, "gpu", "class", "GPU-1", 1, 1, 1, 1, "driver"};
  const DeviceFacts host_ = {Backend::host, "host", "host", "h", 1, 1, 1, 1, ""};
};

TEST_F(TimePlanStoreTest, TheQuickestOfTheLastRunsOfTheDeviceCounts) {
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 0);
  add(gpu_, 40, 20);
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 2);
  EXPECT_EQ(store_.seconds_per_result(host_, 0.5), 0);
  add(gpu_, 100, 20);  // interrupted for lunch, resumed
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 2);
  add(gpu_, 2, 2);  // starts and ends are whole seconds
  add(gpu_, 20, 20, "counters");
  add(gpu_, 20, 20, "measure", 0.02);  // had less to do
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 2);
  add(gpu_, 60, 20);
  for (int i = 0; i < 4; ++i) add(gpu_, 80, 20);
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 3);
}

TEST_F(TimePlanStoreTest, GpusThatShareARunHalveItsTimeAndNotThatOfAResult) {
  add(gpu_, 40, 20);
  store_.database().execute("INSERT INTO tag VALUES (1, 'gpus', '0=GPU-1 1=GPU-2')");
  EXPECT_EQ(store_.seconds_per_result(gpu_, 0.5), 4);
  TimePlan plan{.rows = 10, .rounds = 2, .results = 20, .seconds_each = 4};
  plan.devices = 2;
  EXPECT_NE(time_text(plan).find("about 40 s (4 s each"), std::string::npos) << time_text(plan);
}

}  // namespace
}  // namespace moegate::test
