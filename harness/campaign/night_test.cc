// SPDX-License-Identifier: Apache-2.0
// The night with scripted workers: no process, no device.
#include "harness/campaign/night.h"

#include <csignal>

#include "harness/campaign/night_fixture.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

TEST_F(NightTest, ANightIsItsPhasesInTheirOrder) {
  bless_now();
  std::vector<std::string> phases;
  calls_.verified = [&](const Tally&) { phases.emplace_back("verified"); };
  calls_.spoilt = [&](const Tally&) { phases.emplace_back("spoilt"); };
  calls_.measured = [&](const Tally&) { phases.emplace_back("measured"); };
  calls_.flown = [&](const Canaries&) { phases.emplace_back("flown"); };
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::ok);
  EXPECT_EQ(phases, (std::vector<std::string>{"verified", "spoilt", "measured", "flown"}));
  ASSERT_TRUE(done.verdict);
  EXPECT_EQ(done.verdict->run.id, done.run) << "not the canaries' run, which is newer";
  EXPECT_EQ(done.verdict->result.cases.size(), 6u);
  EXPECT_TRUE(fs::exists(
      program_of({.program = done.verdict->run.program}, {night_.artifacts()}, calls_.build, 1)))
      << "this program was kept";
}

TEST_F(NightTest, AMissedCanaryOutweighsAPass) {
  bless_now();
  program("").touch = {};  // scaled outputs are found right
  const Night done = whole_night();
  EXPECT_EQ(done.exits.canaries, Exit::environment);
  EXPECT_EQ(done.exits.gate, Exit::ok);
  EXPECT_EQ(done.exit(), Exit::environment);
}

TEST_F(NightTest, AWrongOutputBesideASlowerCaseIsBoth) {
  bless_now();
  program("").spans["fused"] = 1100;
  program("").touch = [](const Request& request, Result& result) {
    const bool tiny = request.spec.get("tokens") == "4";
    if (tiny || request.canary.scale != 1) result.status = Status::wrong;
  };
  const Night done = whole_night();
  EXPECT_EQ(done.exits.verify, Exit::accuracy);
  EXPECT_EQ(done.exits.gate, Exit::latency);
  EXPECT_EQ(done.exit(), Exit::both);
}

TEST_F(NightTest, ADeviceThatIsGoneEndsTheNight) {
  program("").dies_at_start = "no device";
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::environment);
  EXPECT_FALSE(done.verdict);
  EXPECT_EQ(failed_, std::vector<std::string>(3, "no device")) << "verify, controls, run";
}

TEST_F(NightTest, AnInterruptedRunIsNotJudged) {
  bless_now();
  program("").touch = [](const Request& request, Result&) {
    if (request.spec.get("tokens") == "2") std::raise(SIGINT);
  };
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::interrupted);
  EXPECT_NE(done.run, 0) << "what was measured is kept";
  EXPECT_FALSE(done.exits.gate);
  EXPECT_FALSE(measured("tokens=16")) << "no canary flew";
}

TEST_F(NightTest, AnInterruptedReplayGivesNoVerdict) {
  bless_now();
  const std::string old_one = program_file("old");
  program("").spans["fused"] = 1100;
  program(old_one).touch = [](const Request&, Result&) { std::raise(SIGINT); };
  calls_.build = [&](const std::string&, double) { return old_one; };
  name_program("a", "gone");
  name_program("b", "gone");
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::interrupted);
  EXPECT_FALSE(done.verdict);
}

TEST_F(NightTest, ABaselinesProgramThatDoesNotAnswerLeavesItToTheStoredNumbers) {
  bless_now();
  const std::string old_one = program_file("old");
  program("").spans["fused"] = 1100;
  program(old_one).dies_at_start = "speaks version 1 of the worker's protocol";
  calls_.build = [&](const std::string&, double) { return old_one; };
  name_program("a", "gone");
  name_program("b", "gone");
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::latency);
  ASSERT_TRUE(done.verdict);
  EXPECT_FALSE(measured(old_one + ": run"));
  ASSERT_FALSE(failed_.empty());
  EXPECT_NE(failed_[0].find("version 1"), std::string::npos) << "and it says why";
}

TEST_F(NightTest, ABaselineThatCannotBeReadFailsTheGateOnly) {
  bless_now();
  std::ofstream(folder_ / "baselines" / "fake-gpu" / "b.tsv") << "no baseline\n";
  const Night done = whole_night();
  EXPECT_EQ(done.exits.canaries, Exit::ok);
  EXPECT_EQ(done.exits.gate, Exit::usage);
  EXPECT_EQ(done.exit(), Exit::usage);
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_NE(failed_[0].find("b.tsv:1"), std::string::npos) << failed_[0];
}

/// Every row takes a second.
class TimedNightTest : public NightTest {
 protected:
  TimedNightTest() {
    night_.clock = [this] { return now_; };
    write_suite("a", "1, 2, 5, 6, 7, 8, 9, 10");
    const auto touch = program("").touch;
    program("").touch = [this, touch](const Request& request, Result& result) {
      ++now_;
      touch(request, result);
    };
  }

  double now_ = 0;
};

TEST_F(TimedNightTest, WhatTheRunHadNoTimeForIsOpenAndNamed) {
  bless_now();  // 18 rows
  now_ = 0;
  night_.budget_s = 25;  // 15 of them until the run is to be over, 4 of them for checks
  const Night done = whole_night();
  EXPECT_LE(now_, 25 + 4) << "a row more for each of its phases";
  ASSERT_TRUE(done.verdict);
  const GateResult& result = done.verdict->result;
  EXPECT_EQ(done.verdict->exit, Exit::ok) << "not missing: " << sentence(result, Exit::ok);
  size_t unmeasured = 0;
  for (const CaseVerdict& v : result.cases) {
    if (v.why != "left out: the time was up before it was measured") continue;
    ++unmeasured;
    EXPECT_EQ(v.outcome, Outcome::inconclusive);
    EXPECT_EQ(std::ranges::count(result.left_out, v.id.key + " " + v.id.variant), 1);
  }
  EXPECT_GT(unmeasured, 0u);
  EXPECT_LT(unmeasured, 18u);
  EXPECT_NE(sentence(result, Exit::ok).find("left out for want of time"), std::string::npos);
  EXPECT_EQ(store().run_info(done.run).status, "interrupted") << "no candidate, and to be resumed";
}

TEST_F(TimedNightTest, CanariesTakeATenthAtMost) {
  bless_now();
  now_ = 0;
  night_.budget_s = 200;  // two rows of scaled outputs, and 12 processes for each of two slow ones
  double before = 0, flew = 0;
  calls_.measured = [&](const Tally&) { before = now_; };
  calls_.flown = [&](const Canaries&) { flew = now_ - before; };
  const Night done = whole_night();
  EXPECT_LE(flew, 20);
  EXPECT_GE(flew, 2 + 12);
  EXPECT_EQ(done.exits.canaries, Exit::ok) << "those that flew were caught";
  EXPECT_TRUE(done.verdict->result.left_out.empty());
}

TEST_F(TimedNightTest, AReplayThatRunsOutOfTimeLeavesTheLeastSuspiciousOpen) {
  bless_now();
  const std::string old_one = program_file("old");
  name_program("a", "gone");
  name_program("b", "gone");
  calls_.build = [&](const std::string&, double seconds) {
    EXPECT_GT(seconds, 0);
    EXPECT_LE(seconds, night_.budget_s);
    return old_one;
  };
  program(old_one).touch = [this](const Request&, Result&) { ++now_; };
  const auto touch = program("").touch;
  program("").touch = [touch](const Request& request, Result& result) {
    touch(request, result);
    if (request.variant == "fused") result.span_ns *= request.spec.get("tokens") == "9" ? 2 : 1.1;
  };
  now_ = 0;
  night_.budget_s = 200;
  const Night done = whole_night();
  EXPECT_LE(now_, 200 + 4);
  ASSERT_TRUE(done.verdict);
  const auto came = outcomes(*done.verdict);
  EXPECT_EQ(came.at("fake/tokens=9 fused"), Outcome::regressed) << "it came first";
  EXPECT_EQ(done.exit(), Exit::latency);
  EXPECT_FALSE(done.verdict->result.left_out.empty());
  for (const std::string& row : done.verdict->result.left_out) {
    EXPECT_EQ(came.at(row), Outcome::inconclusive) << row;
  }
}

TEST_F(TimedNightTest, VerificationThatRanOutOfTimeIsSaid) {
  write_suite("tiny", "4, 40, 41, 42, 43, 44, 45, 46, 47, 48");
  bless_now();
  now_ = 0;
  night_.budget_s = 100;
  const Night done = whole_night();
  ASSERT_TRUE(done.verdict);
  const auto& notes = done.verdict->result.notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_TRUE(notes[0].starts_with("Verification of suite tiny had no time for 10 of 20 rows"))
      << notes[0];
}

TEST(NightOptionsTest, TheDeviceDecidesSuiteAndRounds) {
  NightOptions options;
  options.device = "host";
  EXPECT_EQ(options.budget(), 600);
  EXPECT_EQ(run_options(options, "now").suites, std::vector<std::string>{"smoke"});
  EXPECT_EQ(run_options(options, "now").rounds, 3);
  options.backend = Backend::cuda;
  EXPECT_EQ(options.budget(), 1200);
  EXPECT_EQ(run_options(options, "now").suites, std::vector<std::string>{"nightly"});
  EXPECT_EQ(run_options(options, "now").rounds, 5);
  options.suites = {"a", "b c"};
  options.rounds = 7;
  options.out = "an out";
  options.device = "cuda:1";
  EXPECT_EQ(run_options(options, "now").command,
            "moegate run --suite a --suite 'b c' --device cuda:1 --rounds 7 --db "
            "'an out/results.sqlite' --keep-artifact --label nightly-now");
}

TEST(NightOptionsTest, TheSampleSeedDrawsTokensAndIsRepeated) {
  NightOptions options;
  options.sample_seed = 20261122;
  EXPECT_EQ(verify_options(options, Task::verify).worker.sample_seed, 20261122u);
  const RunOptions run = run_options(options, "now");
  EXPECT_NE(run.command.find(" --sample-seed 20261122 "), std::string::npos) << run.command;
  RunOptions stored;
  stored.from_json(run.to_json());
  EXPECT_EQ(stored.worker.sample_seed, 20261122u);
  std::set<std::string> tokens;
  for (int night = 0; night < 20; ++night, ++options.sample_seed) {
    tokens.insert(drawn_options(options).axes.at("tokens")[0]);
  }
  EXPECT_GT(tokens.size(), 10u);
}

TEST_F(TimedNightTest, WhatWasDrawnIsSaid) {
  bless_now();
  now_ = 0;
  night_.sample_seed = 5;
  program("").hello.operators[0].params.push_back({"routing", "uniform", "ids"});
  const Night done = whole_night();
  ASSERT_TRUE(done.verdict);
  const auto said = [](const std::string& note) {
    return note.find("--sample-seed 5 ") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(done.verdict->result.notes, said));
}

TEST_F(NightTest, InterruptedCanariesGiveNoVerdict) {
  bless_now();
  program("").touch = [](const Request& request, Result&) {
    if (request.canary.asked()) std::raise(SIGINT);
  };
  const Night done = whole_night();
  EXPECT_EQ(done.exit(), Exit::interrupted);
  EXPECT_FALSE(done.verdict);
  EXPECT_FALSE(done.exits.gate);
}

}  // namespace
}  // namespace moegate
