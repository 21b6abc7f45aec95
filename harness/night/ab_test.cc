// SPDX-License-Identifier: Apache-2.0
#include "harness/night/ab.h"

#include <gtest/gtest.h>

#include <csignal>

#include "harness/judge/replay_rule.h"
#include "harness/night/ab_fixture.h"
#include "harness/night/selftest.h"

namespace moegate::test {
namespace {

TEST_F(AbTest, TheSidesTakeTurnsInAnOrderThatIsDrawn) {
  std::set<std::vector<std::string>> orders;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    fake_.journal.clear();
    ab_.run.order_seed = seed;
    const Comparison result = run();
    EXPECT_EQ(result.order_seed, seed);
    const std::vector<std::string> all = starts();
    std::vector<std::string> led;
    for (size_t pair = 1; pair < all.size() / 2; ++pair) {  // the first two plan
      led.push_back(all[2 * pair]);
      EXPECT_EQ(led.back() == "start", !base_leads(seed, static_cast<int>(pair) - 1));
    }
    orders.insert(led);
    RunOptions stored;
    stored.from_json(store().run_info(result.head_run).options);
    EXPECT_EQ(stored.order_seed, seed);
  }
  EXPECT_GT(orders.size(), 1u) << "not always the same";
}

TEST_F(AbTest, ASeedIsDrawnWhereNoneIsGiven) {
  const Comparison one = run(), other = run();
  EXPECT_NE(one.order_seed, 0u);
  EXPECT_NE(one.order_seed, other.order_seed);
}

TEST_F(AbTest, ARoundInWhichAllRowsWereOffIsMeasuredAgain) {
  write_suite("op = fake\n[a]\nrows = 1, 2, 3, 4\n");
  ab_.plan.rounds = 8;
  ab_.suspects.emplace();
  for (int rows = 1; rows <= 4; ++rows) {
    for (const char* variant : {"plain", "fused"}) {
      ab_.suspects->emplace_back(fmt::format("fake/rows={}", rows), variant);
    }
  }
  fake_.program("").touch = [this](const Request&, Result& result) {
    if (fake_.program("").processes == 1 + 3) result.span_ns *= 1.5;  // the head's third
  };
  const Comparison result = run();
  EXPECT_EQ(count("run fake/rows=1 plain"), 8 + 1);
  ASSERT_EQ(result.decided.notes.size(), 1u);
  EXPECT_EQ(result.decided.notes[0],
            "Measured again: the head's process of round 2: 8 of 8 rows off, by +50.1 %.");
  for (const auto& [id, judged] : result.decided.judged) {
    EXPECT_EQ(judged.outcome, Outcome::pass);
    EXPECT_NEAR(result.head.at(id).level.level(), 1, 0.01) << "the wild round is no evidence";
  }
}

TEST_F(AbTest, FindsASlowDownAndNothingElse) {
  fake_.program("").spans["fused"] = 1100;
  const Comparison result = run();
  EXPECT_EQ(result.decided.judged.at(id("fused")).outcome, Outcome::regressed);
  EXPECT_NEAR(result.decided.judged.at(id("fused")).effect, 0.1, 0.01);
  EXPECT_EQ(result.decided.judged.count(id("plain")), 1u);
  EXPECT_NE(result.decided.judged.at(id("plain")).outcome, Outcome::regressed);
}

TEST_F(AbTest, AScreenSendsOnSuspectsOnly) {
  for (const std::string& path : {base_path_, std::string()}) fake_.program(path).noise = 0.0001;
  fake_.program("").spans["fused"] = 1100;
  const Comparison result = run();
  EXPECT_EQ(result.suspects.count(id("fused")), 1u);
  EXPECT_EQ(result.suspects.count(id("plain")), 0u);
  EXPECT_EQ(count("run fake/rows=1 plain"), 3);
  EXPECT_EQ(count("run fake/rows=1 fused"), 3 + 6);
}

TEST_F(AbTest, ExtendsOnlyWhatStaysOpen) {
  fake_.program("").spans["fused"] = 1100;
  fake_.program("").touch = [n = 0](const Request& request, Result& result) mutable {
    if (request.variant == "plain") result.span_ns *= n++ / 2 % 2 == 0 ? 0.8 : 1.25;
  };
  ab_.plan.extra_rounds = 5;
  run();
  EXPECT_EQ(count("run fake/rows=1 plain"), 3 + 6 + 5);
  EXPECT_EQ(count("run fake/rows=1 fused"), 3 + 6);
}

TEST_F(AbTest, IdenticalCodeIsMeasuredOnceAndNotJudged) {
  for (const std::string& path : {base_path_, std::string()})
    fake_.program(path).codes["plain"] = "c0de";
  const Comparison result = run();
  EXPECT_EQ(result.decided.identical.count(id("plain")), 1u);
  EXPECT_EQ(result.decided.judged.count(id("plain")), 0u);
  EXPECT_EQ(count("run fake/rows=1 plain"), 1);
  EXPECT_GT(count("run fake/rows=1 fused"), 1);
}

TEST_F(AbTest, IdenticalCodeThatIsSlowerAllTheSameIsJudged) {
  for (const std::string& path : {base_path_, std::string()})
    fake_.program(path).codes = {{"plain", "c0de"}, {"fused", "c0de2"}};
  fake_.program("").spans["fused"] = 3000;  // as a file that it reads says
  const Comparison result = run();
  EXPECT_EQ(result.decided.identical.count(id("plain")), 1u);
  EXPECT_EQ(result.decided.identical.count(id("fused")), 0u);
  EXPECT_EQ(result.decided.judged.at(id("fused")).outcome, Outcome::regressed);
  Expectation base{"base", "", false, result.base};
  const GateResult verdict = judge(result.head, {{"s", base}}, {Limits::cuda()}, result.decided);
  EXPECT_EQ(verdict.counts.at(Outcome::regressed), 2) << "two cases of fused";
  EXPECT_EQ(verdict.counts.at(Outcome::identical), 2);
}

TEST_F(AbTest, OutputsOfBothSidesAreComparedOnTheSameInputs) {
  const auto error = [](double e) {
    return [e](const Request& request, Result& result) {
      result.seeds = {
          {1, static_cast<uint64_t>(e * 1e9), request.variant == "fused" ? e : 0, 0, 0}};
    };
  };
  fake_.program(base_path_).touch = error(1e-3);
  fake_.program("").touch = error(2e-3);
  const Comparison result = run();
  EXPECT_EQ(result.decided.compared.count(id("plain")), 1u);
  EXPECT_EQ(result.decided.worse.count(id("plain")), 0u);
  EXPECT_EQ(result.decided.worse.count(id("fused")), 1u);
}

TEST_F(AbTest, ALossInFewLaunchesIsSentOnAndFails) {
  const auto mean_over_span = [](double fused) {
    return [fused](const Request& request, Result& result) {
      result.mean_ns = result.span_ns * (request.variant == "fused" ? fused : 1);
    };
  };
  for (const std::string& path : {base_path_, std::string()}) fake_.program(path).noise = 0.0001;
  fake_.program(base_path_).touch = mean_over_span(1);
  fake_.program("").touch = mean_over_span(1.05);
  const Comparison result = run();
  EXPECT_EQ(result.suspects.count(id("fused")), 1u);
  EXPECT_EQ(result.suspects.count(id("plain")), 0u);
  EXPECT_EQ(result.decided.judged.at(id("fused")).outcome, Outcome::regressed)
      << result.decided.judged.at(id("fused")).why;
}

TEST_F(AbTest, AbsentRowsScreenAllAndNoRowsMeasureNone) {
  ab_.suspects.emplace();
  run();
  EXPECT_EQ(std::ranges::count_if(
                fake_.journal,
                [](const std::string& entry) { return entry.find("run") != std::string::npos; }),
            0);
  ab_.suspects = std::vector<RowName>{{"fake/rows=1", "plain"}};
  const Comparison result = run();
  EXPECT_EQ(result.decided.judged.size(), 1u);
  EXPECT_EQ(count("run fake/rows=2 plain"), 0);
}

TEST_F(AbTest, ACrashOfOneSideCostsItsRowOnly) {
  fake_.program("").at("fused", 1) = Status::crashed;
  const Comparison result = run();
  EXPECT_EQ(result.decided.judged.count(id("plain")), 1u);
  EXPECT_FALSE(result.decided.interrupted);
}

TEST_F(AbTest, InterruptedWhileItMeasures) {
  fake_.program(base_path_).touch = [](const Request&, Result&) { raise(SIGINT); };
  const Comparison result = run();
  EXPECT_TRUE(result.decided.interrupted);
  EXPECT_TRUE(result.decided.judged.empty());
  EXPECT_EQ(result.decided.left_out.size(), 4u);
  EXPECT_EQ(store().run_info(result.head_run).status, "interrupted");
  const std::string refused = refusal_of([&] { store().find_run("latest"); });
  EXPECT_NE(refused.find("a side of an A/B is meant by its number"), std::string::npos) << refused;
}

/// An A/B of four rows, of which two are slower, that a signal ends at a row of either side.
class InterruptedAbTest : public AbTest {
 protected:
  GateResult interrupted_at(int row) {
    fake_.program("").spans["fused"] = 1100;
    for (const std::string& path : {base_path_, std::string()}) {
      fake_.program(path).noise = 0.0001;
      fake_.program(path).touch = [this, row](const Request&, Result&) {
        if (++seen_ == row) raise(SIGINT);
      };
    }
    const Comparison result = run();
    EXPECT_EQ(seen_, row) << "nothing is measured after it";
    const Expectation base{"run 1 'base'", "", false, result.base};
    Setting setting{Limits::cuda()};
    setting.paired = true;
    return judge(result.head, {{"s", base}}, setting, result.decided);
  }

  static constexpr int kScreen = 3 * 2 * 4;   // rounds, sides, rows
  static constexpr int kConfirm = 6 * 2 * 2;  // of the slower ones
  int seen_ = 0;
};

TEST_F(InterruptedAbTest, InItsScreenItJudgesWhatTheScreenDecided) {
  const GateResult verdict = interrupted_at(kScreen - 1);
  EXPECT_LE(verdict.count(Outcome::pass), 2);
  EXPECT_GE(verdict.count(Outcome::pass), 1);
  EXPECT_EQ(verdict.count(Outcome::regressed), 0) << "a screen fails nothing";
  EXPECT_EQ(verdict.left_out.size() + static_cast<size_t>(verdict.count(Outcome::pass)), 4u);
  EXPECT_EQ(verdict.cases.size(), 4u) << "each is named once";
}

TEST_F(InterruptedAbTest, InTheLastRoundItJudgesTheRowsThatHaveAllTheirPairs) {
  const GateResult verdict = interrupted_at(kScreen + kConfirm - 1);
  EXPECT_EQ(verdict.count(Outcome::pass), 2);
  EXPECT_EQ(verdict.count(Outcome::regressed), 1);
  EXPECT_EQ(verdict.count(Outcome::inconclusive), 1);
  ASSERT_EQ(verdict.left_out.size(), 1u);
  const auto left_out =
      std::ranges::find(verdict.cases, Outcome::inconclusive, &CaseVerdict::outcome);
  ASSERT_NE(left_out, verdict.cases.end());
  EXPECT_EQ(left_out->why, "not judged: interrupted before all of its pairs were measured");
  EXPECT_FALSE(left_out->latency) << "of fewer pairs than planned";
  const Exit exit = decide_exit(verdict, {}, false);
  EXPECT_EQ(exit, Exit::interrupted);
  EXPECT_TRUE(sentence(verdict, exit).starts_with("INTERRUPTED (exit 130): 1 regressed, "));
  EXPECT_NE(sentence(verdict, exit).find("; 1 not judged"), std::string::npos);
}

TEST_F(InterruptedAbTest, InItsFirstRoundItNamesTheRowsOfOneSide) {
  const GateResult verdict = interrupted_at(2);
  EXPECT_EQ(verdict.left_out.size(), 4u);
  EXPECT_EQ(verdict.count(Outcome::inconclusive), 4);
}

TEST_F(InterruptedAbTest, InTheExtensionWhatItDidNotReachStaysOpen) {
  ab_.plan.extra_rounds = 5;
  ab_.plan.screen_rounds = 2;
  fake_.program("").spans["fused"] = 1000;
  fake_.program("").touch = [this](const Request& request, Result& result) {
    if (request.variant == "plain") result.span_ns *= seen_++ / 2 % 2 == 0 ? 0.8 : 1.25;
    if (seen_ == 2 * (2 + 6) + 1) raise(SIGINT);  // two rows of plain, each round
  };
  const Comparison result = run();
  EXPECT_TRUE(result.decided.interrupted);
  for (const int rows : {1, 2}) {
    EXPECT_EQ(result.decided.judged.at(id("plain", rows)).outcome, Outcome::inconclusive);
    EXPECT_TRUE(result.decided.cut_short(id("plain", rows)));
    EXPECT_FALSE(result.decided.cut_short(id("fused", rows)));
  }
}

TEST_F(AbTest, AParameterThatTheBaseDoesNotKnowIsNoErrorOfTheSuite) {
  fake_.program("").hello.operators[0].params.push_back({"depth", "1", "new"});
  write_suite("op = fake\n[a]\nrows = 1\ndepth = 1, 2\n");
  fake_.program(base_path_).touch = [](const Request& request, Result& result) {
    if (request.spec.get("depth") != "1")
      result = {.variant = request.variant, .status = Status::unsupported};
  };
  const Comparison result = run();
  EXPECT_EQ(result.decided.judged.count(id("plain")), 1u);
  EXPECT_EQ(result.decided.judged.count({"s", "fake/depth=2,rows=1", "plain"}), 0u);
}

TEST_F(AbTest, ASelfTestSeesASlowDownOfAKnownSizeAndNoOther) {
  ab_.base.program = "";
  ab_.trust_code = false;
  ab_.base.canary_slow_by = {0};
  ab_.head.canary_slow_by = {0.05};
  write_suite("op = fake\n[a]\nrows = 1, 2, 3, 4, 5, 6, 7, 8\n");
  const std::vector<Calibration> slow = calibrate(run(), {0.05});
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].judged, 16);
  EXPECT_EQ(slow[0].failed, 16);
  EXPECT_NEAR(slow[0].effect, 0.05, 0.005);

  ab_.base.canary_slow_by = ab_.head.canary_slow_by = {};
  const std::vector<Calibration> none = calibrate(run(), {0});
  EXPECT_EQ(none[0].judged, 16);
  EXPECT_EQ(none[0].failed, 0);
  EXPECT_NEAR(none[0].effect, 0, 0.005);
}

// An A/B whose time is up before all rows are decided.

/// Time that passes while a worker runs, a second a row.
class TimedAbTest : public AbTest {
 protected:
  TimedAbTest() {
    for (const std::string& path : {base_path_, std::string()}) {
      fake_.program(path).touch = [this](const Request&, Result&) { ++now_; };
    }
    write_suite("op = fake\n[a]\nrows = 1, 2, 3, 4\n");
    ab_.plan = {.screen_rounds = 2, .rounds = 4, .extra_rounds = 0};
  }
  void seconds(double budget) {
    ab_.run.deadline = Deadline(budget, [this] { return now_; });
  }
  static std::vector<RowName> all_rows() {
    std::vector<RowName> rows;
    for (int i = 4; i >= 1; --i) {
      for (const char* variant : {"plain", "fused"}) {
        rows.emplace_back(fmt::format("fake/rows={}", i), variant);
      }
    }
    return rows;
  }

  double now_ = 0;
};

TEST_F(TimedAbTest, TheMostSuspiciousRowsAreReplayedAndTheOthersNamed) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 1;
  seconds(35);  // of 64: 8 rows, 4 rounds, 2 sides
  const Comparison result = run();
  EXPECT_LE(now_, 35);
  EXPECT_EQ(result.decided.judged.size(), 4u);
  EXPECT_EQ(result.decided.judged.count(id("plain", 4)), 1u);
  EXPECT_EQ(result.decided.judged.count(id("fused", 4)), 1u);
  EXPECT_EQ(result.decided.judged.count(id("plain", 3)), 1u);
  EXPECT_EQ(result.decided.left_out.size(), 4u);
  EXPECT_EQ(result.decided.left_out.count(id("fused", 1)), 1u) << "with its suite";
  EXPECT_FALSE(measured("rows=1")) << "no time is spent on what cannot be decided";
}

TEST_F(TimedAbTest, WhatIdenticalRowsLeaveOverDecidesOthers) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 1;
  fake_.program("").codes = {{"plain", "c0de"}, {"fused", "new"}};
  fake_.program(base_path_).codes = {{"plain", "c0de"}, {"fused", "old"}};
  seconds(35);
  const Comparison result = run();
  EXPECT_LE(now_, 35);
  EXPECT_EQ(result.decided.identical.size(), 3u);
  EXPECT_EQ(result.decided.judged.size(), 3u) << "a round of an identical row is enough";
  EXPECT_EQ(result.decided.left_out.size(), 2u);
  EXPECT_EQ(result.decided.replaying_s, 2 * 4) << "of each that was left out";
}

TEST_F(TimedAbTest, AfterAScreenTheMostSuspiciousComeFirst) {
  ab_.trust_code = false;
  fake_.program("").spans = {{"fused", 1100}, {"plain", 1030}};
  for (const std::string& path : {base_path_, std::string()}) fake_.program(path).noise = 0;
  seconds(32 + 2 * 4 * 3 + 1);
  const Comparison result = run();
  EXPECT_LE(now_, 32 + 2 * 4 * 3 + 1);
  int replayed = 0;
  for (const CaseId& suspect : result.suspects) {
    if (result.decided.left_out.count(suspect) > 0) continue;
    ++replayed;
    EXPECT_EQ(suspect.variant, "fused");
  }
  EXPECT_EQ(replayed, 3);
  EXPECT_FALSE(result.decided.interrupted);
}

TEST_F(TimedAbTest, AMachineThatGetsSlowerEndsAllTheSame) {
  ab_.suspects = all_rows();
  ab_.seconds_per_row = 0.1;  // it was
  seconds(30);
  const Comparison result = run();
  EXPECT_LE(now_, 31);
  EXPECT_EQ(result.decided.judged.size() + result.decided.left_out.size(), 8u);
  EXPECT_GT(result.decided.left_out.size(), 0u);
}

TEST_F(TimedAbTest, WithoutABudgetNothingIsLeftOut) {
  ab_.suspects = all_rows();
  EXPECT_TRUE(run().decided.left_out.empty());
}

}  // namespace
}  // namespace moegate::test
