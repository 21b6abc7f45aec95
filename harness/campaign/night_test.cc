// SPDX-License-Identifier: Apache-2.0
// The night and its gate with scripted workers: no process, no device.
#include "harness/campaign/night.h"

#include <stdlib.h>

#include <csignal>

#include "harness/base/sha256.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/runner.h"
#include "harness/judge/bless.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// A home with suites a, b, tiny and smoke of the fake operator, whose cases are token counts.
class NightTest : public CampaignTest {
 protected:
  NightTest() {
    for (const char* name : {"suites", "reports", "baselines", "programs"}) {
      fs::create_directories(folder_ / name);
    }
    write_suite("a", "1, 2");
    write_suite("b", "3");
    write_suite("tiny", "4");
    write_suite("smoke", "16");
    setenv("MOEGATE_HOME", folder_.path().c_str(), 1);
    options_.suites = {"a", "b"};
    night_.suites = {"a", "b"};
    night_.device = "cuda:0";
    night_.backend = Backend::cuda;
    night_.rounds = 3;
    night_.out = folder_.path().string();
    rules_.baselines = {folder_ / "baselines", ""};
    rules_.limits = [](Backend) { return Limits::cuda(); };
    calls_.verified = calls_.spoilt = calls_.measured = [](const Tally&) {};
    calls_.flown = [](const Canaries&) {};
    calls_.failed = [this](const Error& error) { failed_.emplace_back(error.what()); };
    calls_.build = [](const std::string&) { return std::string(); };
    program("").touch = [](const Request& request, Result& result) {
      if (request.canary.scale != 1) result.status = Status::wrong;
    };
  }
  ~NightTest() override { unsetenv("MOEGATE_HOME"); }

  void write_suite(const std::string& name, const std::string& tokens) const {
    std::ofstream(folder_ / "suites" / (name + ".suite"))
        << "op = fake\n[m]\ntokens = " << tokens << "\n";
  }
  FakeProgram& program(const std::string& path) {
    FakeProgram& fake = fake_.program(path);
    fake.hello.operators[0].params = {{"tokens", "", "tokens"}};
    return fake;
  }
  /// A file that stands for a program; its script is program()'s.
  std::string program_file(const std::string& name) const {
    const fs::path path = folder_ / "programs" / name;
    std::ofstream(path) << name;
    return path.string();
  }
  int64_t run() { return run_suites(options_, 0, fake_).run; }
  /// Blesses what this program measures now, 1 us each.
  void bless_now() {
    const int64_t id = run();
    Store results = store();
    const RunInfo info = results.run_info(id);
    bless(info, collect(results.levels(id)),
          {.reason = "first", .baselines = folder_ / "baselines", .author = "me"});
  }
  /// Says in a suite's baseline which program measured it.
  void name_program(const std::string& suite, const std::string& hash) const {
    const fs::path path = folder_ / "baselines" / "fake-gpu" / (suite + ".tsv");
    Baseline baseline = read_baseline(path);
    baseline.header.program = hash;
    write_baseline(path, baseline);
    append_blessing(folder_ / "baselines" / "blessings.tsv",
                    {.id = "B0009",
                     .klass = "fake-gpu",
                     .suite = suite,
                     .sha256 = sha256(format_baseline(baseline))});
  }
  Verdict gate_now(const ProgramOf& program_of) {
    const int64_t id = run();
    fake_.journal.clear();
    Store results = store();
    return gate(results, options_.db, id, rules_, program_of, fake_);
  }
  Night whole_night() {
    night_.rules = rules_;
    return night(night_, calls_, fake_);
  }
  static std::map<std::string, Outcome> outcomes(const Verdict& verdict) {
    std::map<std::string, Outcome> all;
    for (const CaseVerdict& v : verdict.result.cases)
      all[v.id.key + " " + v.id.variant] = v.outcome;
    return all;
  }
  bool measured(const std::string& text) const {
    return std::ranges::any_of(fake_.journal, [&](const std::string& entry) {
      return entry.find(text) != std::string::npos;
    });
  }

  GateRules rules_;
  NightOptions night_;
  NightCalls calls_;
  std::vector<std::string> failed_;
};

const ProgramOf kNone = [](const BaselineHeader&) { return std::string(); };

TEST_F(NightTest, SuspectsOfEverySuiteMeetTheProgramOfItsBaseline) {
  bless_now();
  name_program("a", "old");
  name_program("b", "new");
  const std::string old_one = program_file("old"), new_one = program_file("new");
  program(old_one).spans["fused"] = 1100;  // it was the machine that changed
  program(new_one).spans["fused"] = 1000;  // it was the code
  program("").spans["fused"] = 1100;
  const Verdict verdict = gate_now([&](const BaselineHeader& baseline) {
    return (folder_ / "programs" / baseline.program).string();
  });
  EXPECT_EQ(verdict.exit, Exit::latency);
  const auto came = outcomes(verdict);
  EXPECT_EQ(came.at("fake/tokens=1 fused"), Outcome::pass);
  EXPECT_EQ(came.at("fake/tokens=2 fused"), Outcome::pass);
  EXPECT_EQ(came.at("fake/tokens=3 fused"), Outcome::regressed);
  EXPECT_TRUE(measured(old_one + ": run fake/tokens=1 fused"));
  EXPECT_FALSE(measured(old_one + ": run fake/tokens=3"));
  EXPECT_TRUE(measured(new_one + ": run fake/tokens=3 fused"));
  EXPECT_FALSE(measured(new_one + ": run fake/tokens=1"));
  EXPECT_FALSE(measured("plain")) << "no suspect";
}

TEST_F(NightTest, SuitesOfOneProgramAreReplayedTogether) {
  bless_now();
  const std::string old_one = program_file("old");
  program(old_one).spans["fused"] = 1100;
  program("").spans["fused"] = 1100;
  int asked = 0;
  const Verdict verdict = gate_now([&](const BaselineHeader&) {
    ++asked;
    return old_one;
  });
  EXPECT_EQ(verdict.exit, Exit::ok);
  EXPECT_EQ(asked, 2) << "once a suite";
  EXPECT_EQ(store().database().integer("SELECT count(*) FROM run"), 2 + 2) << "one pair of runs";
}

TEST_F(NightTest, WithoutItsProgramTheStoredNumbersDecide) {
  bless_now();
  program("").spans["fused"] = 1100;
  const Verdict verdict = gate_now(kNone);
  EXPECT_EQ(verdict.exit, Exit::latency);
  EXPECT_EQ(outcomes(verdict).at("fake/tokens=1 fused"), Outcome::regressed);
  EXPECT_TRUE(fake_.journal.empty()) << "nothing was replayed";
}

TEST_F(NightTest, WithoutASuspectNoProgramIsLookedFor) {
  bless_now();
  const Verdict verdict = gate_now([](const BaselineHeader&) -> std::string {
    ADD_FAILURE() << "asked for a program";
    return "";
  });
  EXPECT_EQ(verdict.exit, Exit::ok);
  EXPECT_EQ(verdict.result.counts.at(Outcome::pass), 6);
}

TEST_F(NightTest, WithoutABaselineThereIsNothingToFail) {
  EXPECT_EQ(gate_now(kNone).exit, Exit::ok);
  rules_.require_baseline = true;
  EXPECT_EQ(gate_now(kNone).exit, Exit::no_baseline);
}

TEST_F(NightTest, AnotherProgramsRunIsNotReplayed) {
  bless_now();
  program("").spans["fused"] = 1100;
  const int64_t id = run();
  Store results = store();
  results.database().execute("UPDATE run SET program = 'another'");
  try {
    gate(
        results, options_.db, id, rules_, [](const BaselineHeader&) { return "p"; }, fake_);
    FAIL() << "replayed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("measured by another program"), std::string::npos);
  }
}

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
      program_of({.program = done.verdict->run.program}, night_.artifacts(), calls_.build)))
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
  calls_.build = [&](const std::string&) { return old_one; };
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
  calls_.build = [&](const std::string&) { return old_one; };
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
  EXPECT_EQ(run_options(options, "now").suites, std::vector<std::string>{"smoke"});
  EXPECT_EQ(run_options(options, "now").rounds, 3);
  options.backend = Backend::cuda;
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

}  // namespace
}  // namespace moegate
