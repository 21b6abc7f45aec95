// SPDX-License-Identifier: Apache-2.0
// The gate on a stored run with scripted workers: no process, no device.
#include "harness/night/night_gate.h"
#include "harness/base/test_fixture.h"

#include "harness/night/night_fixture.h"

namespace moegate::test {
namespace {

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
  const std::string why = refusal_of([&] {
    gate(
        results, options_.db, id, rules_, [](const BaselineHeader&) { return "p"; }, {}, fake_);
  });
  EXPECT_NE(why.find("another program measured"), std::string::npos);
}

TEST_F(NightTest, TheSameCodeThatIsFarSlowerIsSuspect) {
  program("").codes = {{"fused", "c0de"}, {"plain", "c0de"}};
  bless_now();
  program("").spans["fused"] = 3000;
  const int64_t id = run();
  Store results = store();
  const GateInput input = find_input(results, options_.db, id, rules_);
  const std::vector<CaseId> found = screen_stored(input).suspects;
  ASSERT_EQ(found.size(), 3u);
  for (const CaseId& suspect : found) EXPECT_EQ(suspect.variant, "fused");
}

TEST_F(NightTest, OnAnotherDeviceWithoutAReplayAndFewRowsTheGateSaysThatItCannotSee) {
  bless_now();
  name_gpu("a");
  program("").spans["fused"] = 1030;
  const Verdict verdict = gate_now(kNone);
  EXPECT_EQ(verdict.exit, Exit::environment);
  const std::string first = sentence(verdict.result, verdict.exit);
  EXPECT_TRUE(first.starts_with("FAIL (exit 21): suite a was measured on another device")) << first;
}

TEST_F(NightTest, OnAnotherDeviceManyRowsSayHowFarItsNumbersCanBeTrusted) {
  write_suite("a", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16");
  bless_now();
  name_gpu("a");
  program("").touch = [](const Request& request, Result& result) {
    result.span_ns *= 1.01;  // all of this device
    if (request.spec.get("tokens") == "9" && request.variant == "fused") result.span_ns *= 1.06;
  };
  const Verdict verdict = gate_now(kNone);
  EXPECT_EQ(verdict.exit, Exit::latency);
  for (const auto& [row, outcome] : outcomes(verdict)) {
    if (row.starts_with("fake/tokens=3 ")) continue;  // suite b: the same device
    EXPECT_EQ(outcome, row == "fake/tokens=9 fused" ? Outcome::regressed : Outcome::pass) << row;
  }
  EXPECT_NE(verdict.result.suites.at("a").note.find("the devices differ by +1.0 %"),
            std::string::npos)
      << verdict.result.suites.at("a").note;
}

TEST_F(NightTest, OnAnotherDeviceAReplayDecides) {
  bless_now();
  name_gpu("a");
  name_gpu("b");
  const std::string old_one = program_file("old");
  program("").spans["fused"] = 1030;
  program(old_one).spans["fused"] = 1030;
  EXPECT_EQ(gate_now([&](const BaselineHeader&) { return old_one; }).exit, Exit::ok);
}

}  // namespace
}  // namespace moegate::test
