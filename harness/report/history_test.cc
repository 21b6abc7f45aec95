// SPDX-License-Identifier: Apache-2.0
#include "harness/report/history.h"

#include <nlohmann/json.hpp>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

class HistoryTest : public GateTest {
 protected:
  /// Runs of one commit each, c1, c2, …; `us(i)` is what fused takes in the i-th.
  void add_runs(int n, const std::function<double(int)>& us) {
    for (int i = 1; i <= n; ++i) {
      info_.git_sha = "c" + std::to_string(i);
      add_run([&](Row& row, int) {
        if (row.variant == "fused") row.result.span_ns *= us(i) / 10;
        row.result.code = us(i) < 11 ? "old" : "new";
        return row.tokens == "8";
      });
    }
  }
  int history(Args args = {"--filter", "tokens=8", "--variant", "^fused$"}) {
    args.insert(args.begin(), "history");
    return call(cmd_report, std::move(args));
  }
  std::vector<HistorySeries> read(const HistoryQuery& query) {
    Store store = Store::open(db_, Store::Mode::read);
    return read_history(store, query);
  }
};

TEST_F(HistoryTest, AStepIsReportedBetweenItsCommits) {
  // A tenth of a percent up and down, then 20 % more from the seventh run on.
  add_runs(12, [](int i) { return (i < 7 ? 10 : 12) * (1 + 0.001 * (i % 3)); });
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(
      says("**`topk_sort/tokens=8` `fused`** on nvidia-h200 GPU-1, timer cupti, flush "
           "read, protocol 1\n"))
      << out_;
  EXPECT_TRUE(says("\n▁▁▁▁▁▁▇▇▇▇▇▇ 10 … 12.024 us, newest at the right\n")) << out_;
  EXPECT_TRUE(says("- step of +20.0 % between c6 (run 6) and c7 (run 7), p = 0.0")) << out_;
  EXPECT_EQ(out_.find("step of"), out_.rfind("step of")) << "one step only\n" << out_;
  EXPECT_TRUE(
      says("|   7 | night | GPU-1  | c7     | 12.012 | 0.20 |         3 | ok     | changed | "
           "+20.1 % | +20.0 % |"))
      << out_;
  EXPECT_TRUE(
      says("|   8 | night | GPU-1  | c8     | 12.024 | 0.20 |         3 | ok     | same    |  "
           "+0.1 % |         |"))
      << out_;
}

TEST_F(HistoryTest, AStepOfChangedCodeNeedsTwoRunsOnEachSide) {
  add_runs(4, [](int i) { return (i < 3 ? 10 : 12) * (1 + 0.001 * (i % 2)); });
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(says("- step of +20.0 % between c2 (run 2) and c3 (run 3), p = ")) << out_;
}

TEST_F(HistoryTest, TooFewRunsAreSaid) {
  add_runs(4, [](int i) { return i < 3 ? 10 : 10.5; });  // below 11: the same code
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(
      says("4 runs are too few to find a step where the code did not change; 10 are "
           "enough."))
      << out_;
}

TEST_F(HistoryTest, AStepSaysWhatItIsOf) {
  const auto us = [](int i) { return (i < 7 ? 10 : 12) * (1 + 0.001 * (i % 3)); };
  add_runs(12, us);
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(says(": code (what is launched changed)\n")) << out_;
  EXPECT_TRUE(says("| +20.0 % | code ")) << out_;
}

TEST_F(HistoryTest, OtherCodeOfTheSameCommitIsTheEnvironments) {
  for (const bool stored : {false, true}) {
    fs::remove(db_);
    for (int i = 1; i <= 6; ++i) {
      if (stored) environment_ = {{"package", "triton", i < 4 ? "3.5.1" : "3.6.0", ""}};
      add_run([&](Row& row, int) {
        if (row.variant == "fused") row.result.span_ns *= (i < 4 ? 1 : 1.2) * (1 + 0.001 * (i % 3));
        row.result.code = i < 4 ? "old" : "new";
        return row.tokens == "8";
      });
    }
    EXPECT_EQ(history(), 0) << out_;
    EXPECT_TRUE(says(std::string(": environment (what is launched changed, the commit did not; ") +
                     (stored ? "triton 3.5.1 -\\> 3.6.0)\n" : "environment not stored)\n")))
        << out_;
    EXPECT_TRUE(says("| +20.0 % | environment |")) << out_;
  }
}

TEST_F(HistoryTest, RowsOfTheSameCodeThatMoveTogetherAreTheMachine) {
  for (int i = 1; i <= 12; ++i) {
    info_.git_sha = "c" + std::to_string(i);
    add_run([&](Row& row, int) {
      row.result.span_ns *= (i < 7 ? 1 : 1.2) * (1 + 0.001 * (i % 3));
      row.result.code = "same";
      return true;
    });
  }
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(says(": machine (3 other rows, whose code did not change, moved by +20.1 %)"))
      << out_;
}

TEST_F(HistoryTest, AnotherDriverIsTheMachineAndOtherSetsAreTheBenchmark) {
  const auto slower_from_the_seventh = [&](const std::function<void()>& change) {
    fs::remove(db_);
    const RunInfo first = info_;
    for (int i = 1; i <= 12; ++i) {
      if (i == 7) change();
      add_run([&](Row& row, int) {
        row.result.span_ns *= (i < 7 ? 1 : 1.2) * (1 + 0.001 * (i % 3));
        row.result.code = "same";
        return row.tokens == "8" && row.variant == "fused";
      });
    }
    info_ = first;
    const auto all = read({"tokens=8", "fused", "", 0});
    EXPECT_EQ(all.at(0).steps.size(), 1u);
    return std::string(name_of(all[0].steps.at(0).kind)) + ", " + all[0].steps[0].why;
  };
  EXPECT_EQ(slower_from_the_seventh([] {}), "noise, nothing that is recorded changed");
  EXPECT_EQ(slower_from_the_seventh([&] { info_.device.driver = "590"; }),
            "machine, driver 580 -> 590");
  EXPECT_EQ(slower_from_the_seventh([&] { info_.tags[kSetsTag] = "2"; }),
            "benchmark, problem sets all -> 2");
}

TEST_F(HistoryTest, ProfilingRunsAreNoPoints) {
  add_run();
  info_.task = "counters";
  add_run();
  info_.task = "measure";
  EXPECT_EQ(read({"tokens=8", "fused", "", 0}).at(0).points.size(), 1u);
}

TEST_F(HistoryTest, LastIsTheNewest) {
  add_runs(3, [](int) { return 10.0; });
  EXPECT_EQ(
      history({"--filter", "tokens=8", "--variant", "fused", "--last", "2", "--format", "csv"}), 0);
  EXPECT_FALSE(says(",c1,")) << out_;
  EXPECT_TRUE(says(",c2,")) << out_;
  EXPECT_TRUE(says(",c3,")) << out_;
}

TEST_F(HistoryTest, OfManyRowsTheFirstAreShownAndTheRestIsCounted) {
  add_runs(2, [](int) { return 10; });
  testing::internal::CaptureStderr();
  const auto some = read({.case_pattern = "tokens", .most = 1});
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_EQ(some.size(), 1u);
  EXPECT_NE(said.find(" rows match; these are the first 1: narrow --filter"), std::string::npos)
      << said;
  testing::internal::CaptureStderr();
  const auto all = read({.case_pattern = "tokens"});
  EXPECT_GT(all.size(), 1u);
  EXPECT_EQ(all.front().key + all.front().variant, some.front().key + some.front().variant);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(HistoryTest, WhatDoesNotCompareIsAnotherSeries) {
  add_run();
  const RunInfo first = info_;
  const std::vector<std::function<void()>> changes = {
      [&] { info_.device.uuid = "GPU-2"; }, [&] { info_.device.klass = "nvidia-b200"; },
      [&] { info_.timer = "event"; }, [&] { info_.flush = "write"; }, [&] { info_.protocol = 2; }};
  for (const auto& change : changes) {
    change();
    add_run();
    info_ = first;
  }
  add_run();
  const auto all = read({"tokens=8", "fused", "", 0});
  ASSERT_EQ(all.size(), 1 + changes.size());
  size_t points = 0;
  for (const HistorySeries& series : all) points += series.points.size();
  EXPECT_EQ(points, 2 + changes.size());
  EXPECT_EQ(read({"tokens=8", "fused", "nvidia-b200", 0}).size(), 1u);
}

TEST_F(HistoryTest, OfARunOnSeveralGpusARowCountsWhereItWasMeasured) {
  info_.tags[kGpusTag] = "0=GPU-1 1=GPU-2";
  for (const double gpu : {0, 1, 1}) {
    add_run([gpu](Row& row, int) {
      row.result.metrics.push_back({.name = kGpuMetric, .unit = "", .value = gpu});
      return true;
    });
  }
  const auto all = read({.case_pattern = "tokens=8", .variant_pattern = "^fused$"});
  std::map<std::string, size_t> points;
  for (const HistorySeries& series : all) points[series.uuid] = series.points.size();
  EXPECT_EQ(points, (std::map<std::string, size_t>{{"GPU-1", 1}, {"GPU-2", 2}}));
}

TEST_F(HistoryTest, HostsOfOneClassAreOneSeriesOfRatios) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  add_run();
  info_.device.uuid = "another-host";
  info_.dirty = true;
  add_run([](Row& row, int) {
    row.result.ratio *= row.variant == "fused" ? 1.1 : 1;
    return true;
  });
  const auto all = read({"tokens=8", "", "", 0});
  ASSERT_EQ(all.size(), 1u) << "the yardstick has no level";
  ASSERT_EQ(all[0].points.size(), 2u);
  EXPECT_NEAR(all[0].points[0].level.level(), 0.5, 1e-4);
  EXPECT_NEAR(all[0].points[1].level.level(), 0.55, 1e-4);
  EXPECT_EQ(history({"--filter", "tokens=8", "--format", "json"}), 0);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json[1]["commit"], "abc123+dirty");
  EXPECT_EQ(json[1]["unit"], "ratio");
  EXPECT_EQ(json[1]["device"], "another-host");
}

TEST_F(HistoryTest, NoisyRunsAreShownAndNoStepIsSearchedOverThem) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  const auto add = [&](bool noisy, double ratio) {
    add_run([=](Row& row, int) {
      if (noisy) row.result.status = Status::noisy;
      if (row.variant == "fused") row.result.ratio *= ratio;
      return row.tokens == "8";
    });
  };
  add(true, 2);
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(says("| noisy  |")) << out_;
  for (int i = 0; i < 10; ++i) add(false, 1 + 0.001 * (i % 3));
  add(true, 2);
  const auto all = read({"tokens=8", "fused", "", 0});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].points.size(), 10u);
  EXPECT_EQ(all[0].noisy.size(), 2u);
  EXPECT_EQ(all[0].changes.size(), 0u);
  EXPECT_EQ(history(), 0) << out_;
  EXPECT_TRUE(says("No step found. No step is searched over the 2 that are noisy.")) << out_;
  EXPECT_EQ(history({"--filter", "tokens=8", "--last", "3", "--format", "json"}), 0);
  const auto json = nlohmann::json::parse(out_);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[2]["status"], "noisy");
  EXPECT_TRUE(json[2]["change"].is_null());
  EXPECT_TRUE(json[1]["change"].is_number());
  EXPECT_EQ(json[1]["run"], 11);
}

TEST_F(HistoryTest, OnlyCompleteRunsThatAreNoSideOfAnAb) {
  add_run({}, "interrupted");
  const int64_t slowed = add_run();
  Store::open(db_, Store::Mode::update)
      .database()
      .execute("INSERT INTO tag VALUES (" + std::to_string(slowed) + ", 'ab', 'head')");
  const int64_t good = add_run();
  const auto all = read({"tokens=8", "fused", "", 0});
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].points.size(), 1u);
  EXPECT_EQ(all[0].points[0].run, good);
}

TEST_F(HistoryTest, NothingMatchedIsACoverageFailureThatSaysWhatThereIs) {
  add_run();
  EXPECT_EQ(history({"--filter", "tokens=7"}), 13);
  EXPECT_TRUE(
      says("nothing matches --filter 'tokens=7'; there is: "
           "topk_sort/tokens=8 chain, topk_sort/tokens=8 fused, topk_sort/tokens=16 chain"))
      << out_;
  EXPECT_EQ(history({"--filter", "tokens=8", "--class", "b200"}), 13);
  EXPECT_TRUE(says("--class 'b200'")) << out_;
  EXPECT_TRUE(says("nvidia-h200")) << out_;
  EXPECT_EQ(history({"--filter", "("}), 2);
  EXPECT_EQ(history({"--variant", "fused"}), 2);
  EXPECT_EQ(history({"--filter", "8", "--last", "-1"}), 2);
}

}  // namespace
}  // namespace moegate::test
