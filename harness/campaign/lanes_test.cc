// SPDX-License-Identifier: Apache-2.0
// Runs on several GPUs that are none.
#include "harness/campaign/lanes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <latch>

#include "harness/base/test_fixture.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/recording.h"
#include "harness/campaign/runner.h"
#include "harness/night/ab.h"

namespace moegate::test {
namespace {

class LanesTest : public CampaignTest {
 protected:
  static constexpr int kCases = 20;
  static constexpr size_t kRows = 2 * kCases;  // fused and plain

  LanesTest() {
    std::string rows = "1";
    for (int i = 2; i <= kCases; ++i) rows += ", " + std::to_string(i);
    write_suite("op = fake\n[a]\nrows = " + rows + "\n");
    options_.worker.device = "cuda:0,1";
    options_.order_seed = 7;
    for (const std::string& path : {std::string(), base_program()}) {
      fake_.program(path).uuids = {{"cuda:0", "GPU-a"}, {"cuda:1", "GPU-b"}};
    }
    meet("");
    meet(base_program());
  }

  std::string base_program() const { return (folder_ / "base.out").string(); }
  /// No GPU goes on before both are at work, whichever program is first.
  void meet(const std::string& path) {
    fake_.program(path).on_device = [this](const std::string& device, const Request& request,
                                           Result& result) {
      const bool first = device == "cuda:0" ? !met_a_.exchange(true) : !met_b_.exchange(true);
      if (first) both_.arrive_and_wait();
      if (then_) then_(device, request, result);
    };
  }
  /// Which GPUs measured a case.
  std::map<std::string, std::set<std::string>> places() {
    std::map<std::string, std::set<std::string>> by_case;
    for (const auto& [device, entries] : fake_.by_device) {
      for (const std::string& entry : entries) {
        const size_t from = entry.find("fake/"), to = entry.rfind(' ');
        if (from != std::string::npos) by_case[entry.substr(from, to - from)].insert(device);
      }
    }
    return by_case;
  }
  void expect_whole_cases() {
    const auto by_case = places();
    EXPECT_EQ(by_case.size(), size_t{kCases});
    for (const auto& [key, devices] : by_case) EXPECT_EQ(devices.size(), 1u) << key;
    for (const char* device : {"cuda:0", "cuda:1"}) {
      EXPECT_GT(fake_.by_device[device].size(), 1u) << device << " had nothing to do";
    }
  }
  static double gpu_of(const Level& level) {
    for (const Metric& metric : level.result.metrics) {
      if (metric.name == kGpuMetric) return metric.value;
    }
    return -1;
  }

  std::latch both_{2};
  std::atomic<bool> met_a_ = false, met_b_ = false;
  std::function<void(const std::string&, const Request&, Result&)> then_;
};

TEST_F(LanesTest, ACaseIsDealtOutWholeAndItsRowsSayWhere) {
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::ok);
  EXPECT_EQ(tally.gpus, 2u);
  EXPECT_EQ(tally.counts.at(Status::ok), static_cast<int>(3 * kRows));
  expect_whole_cases();
  Store results = store();
  const RunInfo info = results.run_info(tally.run);
  EXPECT_EQ(info.tags.at(kGpusTag), "0=GPU-a 1=GPU-b");
  EXPECT_EQ(info.rounds, 3);
  const auto by_case = places();
  for (const Level& level : results.levels(tally.run)) {
    const std::string gpu = *by_case.at(level.key).begin();
    EXPECT_EQ(fmt::format("cuda:{:g}", gpu_of(level)), gpu) << level.key;
  }
  EXPECT_NE(summary(tally, "run 1").find(" on 2 x fake GPU: "), std::string::npos);
}

TEST_F(LanesTest, TheStoreAndItsOrderAreThoseOfOneGpu) {
  const auto rows_of = [&](int64_t run) {
    std::vector<std::string> rows;
    for (const Level& level : store().levels(run)) {
      rows.push_back(fmt::format("{} {} {}", level.key, level.variant, level.round));
    }
    return rows;
  };
  const int64_t two = run_suites(options_, 0, fake_).run;
  options_.worker.device = "cuda:0";
  const int64_t one = run_suites(options_, 0, fake_).run;
  EXPECT_EQ(rows_of(two).size(), 3 * kRows);
  EXPECT_EQ(rows_of(two), rows_of(one));
  EXPECT_EQ(store().run_info(one).tags.count(kGpusTag), 0u) << "nothing to state";
}

TEST_F(LanesTest, FailuresComeInTheOrderOfTheirRows) {
  then_ = [](const std::string&, const Request&, Result& result) {
    result.status = Status::wrong;
    result.why = "spoilt";
  };
  options_.rounds = 1;
  for (const bool check : {false, true}) {
    options_.worker.task = check ? Task::verify : Task::measure;
    const Tally tally = check ? check_suites(options_, fake_) : run_suites(options_, 0, fake_);
    ASSERT_EQ(tally.failures.size(), kRows);
    for (int i = 0; i < kCases; ++i) {
      EXPECT_EQ(tally.failures[static_cast<size_t>(2 * i)].key, fmt::format("fake/rows={}", i + 1));
    }
  }
}

TEST_F(LanesTest, BothSidesOfAComparisonMeetOnOneGpu) {
  AbOptions ab;
  ab.run = options_;
  ab.base.program = base_program();
  std::ofstream(base_program()) << "a program";
  ab.trust_code = false;
  Store results = store();
  const Comparison comparison =
      run_ab(results, prepare_ab(ab, fake_), [](Backend) { return Limits::cuda(); });
  EXPECT_EQ(comparison.head.size(), kRows);
  EXPECT_TRUE(std::ranges::any_of(fake_.by_device["cuda:1"], [](const std::string& entry) {
    return entry.find("base.out: run") != std::string::npos;
  }));
  expect_whole_cases();
}

TEST_F(LanesTest, ARowThatDiesCostsItselfAndNotTheOtherGpu) {
  then_ = [](const std::string&, const Request& request, Result& result) {
    if (request.spec.get("rows") != "5" || request.variant != "fused") return;
    result.status = Status::crashed;
    result.why = "by the script";
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  EXPECT_EQ(tally.lost, 0u);
  EXPECT_EQ(tally.counts.at(Status::crashed), 3);
  EXPECT_EQ(tally.counts.at(Status::ok), static_cast<int>(3 * kRows - 3));
  expect_whole_cases();
}

TEST_F(LanesTest, AGpuThatIsLostLeavesItsCasesBehindUntilItIsBack) {
  std::atomic<int> starts = 0;
  fake_.program("").start = [&](const std::string& device) {
    if (device == "cuda:1" && ++starts == 1 + 2) throw Error(Exit::environment, "fell off the bus");
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.lost, 1u);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  ASSERT_EQ(tally.notes.size(), 1u);
  EXPECT_TRUE(tally.notes[0].starts_with("cuda:1 was lost (fell off the bus)")) << tally.notes[0];
  EXPECT_TRUE(tally.left_out.empty()) << "each has a round";
  std::map<double, int> results;
  for (const Level& level : store().levels(tally.run)) ++results[gpu_of(level)];
  EXPECT_EQ(results[0] / 3, static_cast<int>(kRows) - results[1]) << "one of its three rounds";
  EXPECT_EQ(store().run_info(tally.run).status, "interrupted");
  const Tally finished = run_suites(options_, tally.run, fake_);
  EXPECT_EQ(finished.exit(), Exit::ok);
  EXPECT_EQ(store().levels(tally.run).size(), 3 * kRows);
  expect_whole_cases();
}

TEST_F(LanesTest, WhatALostGpuHadNotBegunIsTheOthers) {
  std::atomic<int> starts = 0;
  fake_.program("").start = [&](const std::string& device) {
    if (device == "cuda:1" && ++starts == 1 + 2) throw Error(Exit::environment, "fell off the bus");
  };
  then_ = [](const std::string& device, const Request&, Result& result) {
    if (device == "cuda:1") result.status = Status::timeout;  // so that its worker starts again
  };
  options_.rounds = 1;
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.lost, 1u);
  EXPECT_EQ(tally.counts.at(Status::timeout), 1);
  EXPECT_EQ(tally.counts.at(Status::ok), static_cast<int>(kRows - 2))
      << "but the rows that it had begun";
  EXPECT_EQ(tally.left_out.size(), 1u) << "its other variant";
}

TEST_F(LanesTest, WhenAllAreLostTheRunEndsWithTheLastOnesReason) {
  std::atomic<int> starts = 0;
  fake_.program("").start = [&](const std::string&) {
    if (++starts > 2 + 2) throw Error(Exit::environment, "fell off the bus");
  };
  const std::string why = refusal_of([&] { run_suites(options_, 0, fake_); }, Exit::environment);
  EXPECT_NE(why.find("fell off the bus; `moegate run --resume"), std::string::npos) << why;
  EXPECT_EQ(store().run_info(1).status, "interrupted");
}

TEST_F(LanesTest, CtrlCLeavesARunThatResumesWhereItsCasesWere) {
  std::atomic<int> seen = 0;
  then_ = [&](const std::string&, const Request&, Result&) {
    if (++seen == 30) raise(SIGINT);
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::interrupted);
  const size_t before = store().levels(tally.run).size();
  EXPECT_GE(before, 29u);
  EXPECT_LE(before, 31u) << "both stopped at the row at hand";
  then_ = nullptr;
  const Tally resumed = run_suites(options_, tally.run, fake_);
  EXPECT_EQ(resumed.exit(), Exit::ok);
  EXPECT_EQ(store().levels(tally.run).size(), 3 * kRows);
  expect_whole_cases();
}

TEST_F(LanesTest, ARunResumesOnTheSameGpusOnly) {
  std::atomic<bool> raised = false;
  then_ = [&](const std::string&, const Request&, Result&) {
    if (!raised.exchange(true)) raise(SIGINT);  // a second one kills
  };
  const int64_t run = run_suites(options_, 0, fake_).run;
  options_.worker.device = "cuda:0";
  EXPECT_EQ(
      refusal_of([&] { run_suites(options_, run, fake_); }),
      "--resume 1: the run has device 'GPU-a,GPU-b', and here it is 'GPU-a'; start a new run");
}

TEST_F(LanesTest, AnErrorOnOneGpuStopsTheOther) {
  std::atomic<int> after = 0;
  std::atomic<bool> thrown = false;
  then_ = [&](const std::string& device, const Request&, Result&) {
    if (device == "cuda:1") {
      thrown = true;
      throw Error(Exit::store, "the disk is full");
    }
    while (!thrown) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the other one's turn
    ++after;
  };
  EXPECT_THROW(run_suites(options_, 0, fake_), Error);
  EXPECT_LT(after, static_cast<int>(kRows)) << "not even its first round";
  EXPECT_EQ(store().run_info(1).status, "interrupted");
}

TEST_F(LanesTest, DevicesThatDoNotCompareShareNoRun) {
  fake_.program("").classes["cuda:1"] = "other-gpu";
  EXPECT_EQ(refusal_of([&] { run_suites(options_, 0, fake_); }),
            "--device cuda:1: this device has class other-gpu, and cuda:0 has class fake-gpu, so "
            "their times cannot be compared; measure on each device alone");
  EXPECT_FALSE(std::filesystem::exists(options_.db));
}

TEST_F(LanesTest, AGpuThatIsNotThereLeavesNoStore) {
  fake_.program("").start = [](const std::string& device) {
    if (device == "cuda:1") throw Error(Exit::environment, "device cuda:1 is not there");
  };
  EXPECT_EQ(refusal_of([&] { run_suites(options_, 0, fake_); }, Exit::environment),
            "device cuda:1 is not there");
  EXPECT_FALSE(std::filesystem::exists(options_.db));
}

TEST_F(LanesTest, WhatAWorkerSaysOfItsGpuIsOverwritten) {
  then_ = [](const std::string&, const Request&, Result& result) {
    result.metrics = {{.name = kGpuMetric, .unit = "", .value = 7}};
  };
  options_.rounds = 1;
  for (const Level& level : store().levels(run_suites(options_, 0, fake_).run)) {
    EXPECT_LE(gpu_of(level), 1);
  }
}

}  // namespace
}  // namespace moegate::test
