// SPDX-License-Identifier: Apache-2.0
// The night with scripted workers: no process, no device.
#include "harness/night/night.h"

#include <csignal>

#include "harness/night/night_fixture.h"

namespace moegate::test {
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
            "moegate run --suite a --suite 'b c' --invariance 128 --device cuda:1 --rounds 7 --db "
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
}  // namespace moegate::test
