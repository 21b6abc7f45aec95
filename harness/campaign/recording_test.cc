// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/recording.h"

#include <gtest/gtest.h>

#include <csignal>

#include "harness/base/test_fixture.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/runner.h"

namespace moegate::test {
namespace {

class RecordingTest : public CampaignTest {
 protected:
  /// Ctrl-C while the n-th row of a run is measured, counted from 1.
  void interrupt_at(int row) {
    fake_.program("").touch = [row, seen = 0](const Request&, Result&) mutable {
      if (++seen == row) raise(SIGINT);
    };
  }
  std::map<std::string, int> statuses(int64_t run) {
    std::map<std::string, int> counts;
    for (const Level& level : store().levels(run)) ++counts[name_of(level.result.status)];
    return counts;
  }
};

TEST_F(RecordingTest, ARunHasEveryRowInEveryRoundAndAProcessPerRound) {
  options_.rounds = 3;
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::ok);
  EXPECT_EQ(tally.counts.at(Status::ok), 2 * 2 * 3);
  EXPECT_EQ(count("start"), 1 + 3) << "the worker that planned measures nothing";
  std::map<int, std::set<RowName>> rounds;
  for (const Level& level : store().levels(tally.run)) {
    rounds[level.round].insert({level.key, level.variant});
  }
  ASSERT_EQ(rounds.size(), 3u);
  for (const auto& [round, rows] : rounds) EXPECT_EQ(rows.size(), 4u) << round;
}

TEST_F(RecordingTest, ResumeLeavesOutWhatIsThere) {
  options_.rounds = 2;
  interrupt_at(3);
  const Tally first = run_suites(options_, 0, fake_);
  EXPECT_EQ(first.exit(), Exit::interrupted);
  EXPECT_EQ(store().run_info(first.run).status, "interrupted");
  EXPECT_EQ(store().levels(first.run).size(), 3u);

  fake_.program("").touch = nullptr;
  fake_.journal.clear();
  const Tally second = run_suites(options_, first.run, fake_);
  EXPECT_EQ(second.run, first.run);
  EXPECT_EQ(second.exit(), Exit::ok);
  EXPECT_EQ(second.counts.at(Status::ok), 5);
  EXPECT_EQ(store().levels(first.run).size(), 8u);
  EXPECT_EQ(store().run_info(first.run).status, "complete");
}

TEST_F(RecordingTest, ResumeRefusesAnotherProgram) {
  interrupt_at(1);
  const Tally first = run_suites(options_, 0, fake_);
  fake_.program("").hello.git_sha = "fedcba9";
  const std::string why = refusal_of([&] { run_suites(options_, first.run, fake_); });
  EXPECT_NE(why.find("commit"), std::string::npos) << why;
}

TEST_F(RecordingTest, ACrashCostsOneRowAndAFreshWorkerFollows) {
  options_.rounds = 1;
  fake_.program("").touch = [](const Request& request, Result& result) {
    if (request.spec.key() != "fake/rows=2" || request.variant != "plain") return;
    result.status = Status::crashed;
    result.why = "crashed by the script";
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  EXPECT_EQ(statuses(tally.run), (std::map<std::string, int>{{"crashed", 1}, {"ok", 3}}));
  ASSERT_EQ(tally.failures.size(), 1u);
  EXPECT_EQ(tally.failures[0].why, "crashed by the script");
  EXPECT_EQ(count("run fake/rows=2 plain"), 2) << "once more, alone, before it is blamed";
  EXPECT_EQ(count("start"), 1 + 2);
}

TEST_F(RecordingTest, ARowThatOnlyDiesAfterAnotherIsNotBlamedButThatOneIs) {
  options_.rounds = 1;
  run_suites(options_, 0, fake_);
  ASSERT_EQ(fake_.journal.size(), 2u + 4u);
  const std::string culprit = fake_.journal[2], innocent = fake_.journal[3];
  fake_.journal.clear();
  // Whatever runs next in the culprit's process dies, as of an alarm that it has set.
  fake_.program("").touch = [&](const Request&, Result& result) {
    const auto& all = fake_.journal;
    if (all.size() < 2 || all[all.size() - 2] != culprit) return;
    result.status = Status::crashed;
    result.why = "the process died of signal 14";
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(statuses(tally.run), (std::map<std::string, int>{{"crashed", 1}, {"ok", 3}}));
  EXPECT_EQ(tally.counts, (std::map<Status, int>{{Status::ok, 3}, {Status::crashed, 1}}));
  ASSERT_EQ(tally.failures.size(), 1u);
  const Failure& failure = tally.failures[0];
  EXPECT_EQ("run " + failure.key + " " + failure.variant, culprit);
  EXPECT_NE(failure.why.find("while " + innocent.substr(4) + " ran"), std::string::npos)
      << failure.why;
  for (const Level& level : store().levels(tally.run)) {
    const bool blamed = "run " + level.key + " " + level.variant == culprit;
    EXPECT_EQ(level.result.status, blamed ? Status::crashed : Status::ok);
  }
}

TEST_F(RecordingTest, ADeathThatDoesNotComeBackIsTheRowsOwnAndIsSaid) {
  options_.rounds = 1;
  std::string crashed;
  fake_.program("").touch = [&](const Request&, Result& result) {
    if (fake_.journal.size() != 5) return;
    result.status = Status::crashed;
    crashed = fake_.journal.back();
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  EXPECT_EQ(statuses(tally.run), (std::map<std::string, int>{{"crashed", 1}, {"ok", 3}}));
  ASSERT_EQ(tally.failures.size(), 1u);
  EXPECT_EQ("run " + tally.failures[0].key + " " + tally.failures[0].variant, crashed);
  ASSERT_EQ(tally.notes.size(), 1u);
  EXPECT_NE(tally.notes[0].find("it caused the crash itself"), std::string::npos) << tally.notes[0];
}

TEST_F(RecordingTest, ARowThatDiesInEverySecondProcessIsNotItsNeighboursFault) {
  options_.rounds = 1;
  run_suites(options_, 0, fake_);
  const std::string flaky = fake_.journal[4];  // the third row
  fake_.journal.clear();
  // Behind its neighbour, not alone, behind its neighbour, alone: as a toss of a coin may come out.
  fake_.program("").touch = [&](const Request&, Result& result) {
    const bool dies = std::set<long>{2, 4, 5}.contains(count("start"));
    if (dies && fake_.journal.back() == flaky) result.status = Status::crashed;
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(statuses(tally.run), (std::map<std::string, int>{{"crashed", 1}, {"ok", 3}}));
  ASSERT_EQ(tally.failures.size(), 1u);
  EXPECT_EQ("run " + tally.failures[0].key + " " + tally.failures[0].variant, flaky);
}

TEST_F(RecordingTest, ATimeOutCostsOneRowAndAFreshWorkerFollows) {
  options_.rounds = 1;
  fake_.program("").at("plain", 1) = Status::timeout;
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  EXPECT_EQ(statuses(tally.run), (std::map<std::string, int>{{"ok", 3}, {"timeout", 1}}));
  EXPECT_EQ(count("start"), 1 + 2);
}

TEST_F(RecordingTest, AWrongRowIsCountedAndKeepsItsWorker) {
  options_.rounds = 1;
  fake_.program("").at("plain", 1) = Status::wrong;
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::accuracy);
  EXPECT_EQ(tally.counts.at(Status::wrong), 2);
  EXPECT_EQ(count("start"), 1 + 1);
}

TEST_F(RecordingTest, RoundsHaveAnOrderOfTheirOwn) {
  options_.rounds = 2;
  run_suites(options_, 0, fake_);
  std::vector<std::vector<std::string>> rounds;
  for (const std::string& entry : fake_.journal) {
    if (entry == "start") {
      rounds.emplace_back();
    } else {
      rounds.back().push_back(entry);
    }
  }
  ASSERT_EQ(rounds.size(), 1u + 2u);
  EXPECT_TRUE(rounds[0].empty()) << "it planned";
  EXPECT_TRUE(std::ranges::is_permutation(rounds[1], rounds[2]));
  EXPECT_NE(rounds[1], rounds[2]);
}

TEST_F(RecordingTest, ABadSuiteLeavesNoStore) {
  write_suite("op = fake\n[a]\nrows = 1\ncolumns = 2\n");
  EXPECT_THROW(run_suites(options_, 0, fake_), Error);
  EXPECT_FALSE(std::filesystem::exists(options_.db));
}

TEST_F(RecordingTest, TheWorkersWordOnACaseLeavesNoStore) {
  fake_.program("").answer = [](const CaseQuestion& question) {
    return CaseAnswer{.error = question.spec.get("rows") == "2" ? "rows = 2 is odd" : "",
                      .unsupported = {}};
  };
  EXPECT_EQ(refusal_of([&] { run_suites(options_, 0, fake_); }), "rows = 2 is odd");
  EXPECT_FALSE(std::filesystem::exists(options_.db));
}

TEST_F(RecordingTest, AWorkerThatDoesNotStartLeavesNoStore) {
  fake_.program("").dies_at_start = "no such device";
  EXPECT_THROW(run_suites(options_, 0, fake_), Error);
  EXPECT_FALSE(std::filesystem::exists(options_.db));
}

TEST_F(RecordingTest, AWorkerMayKnowOperatorsThatThisProgramDoesNot) {
  Hello& hello = fake_.program("").hello;
  hello.operators = {
      {.name = "conv3d", .help = "", .params = {{"depth", "", "planes"}}, .yardstick = ""}};
  hello.variants = {{.op = "conv3d",
                     .name = "triton_planes",
                     .backend = Backend::cuda,
                     .language = "Triton",
                     .help = ""}};
  write_suite("op = conv3d\n[a]\ndepth = 3\n");
  options_.rounds = 1;
  const Tally tally = run_suites(options_, 0, fake_);
  const auto levels = store().levels(tally.run);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0].key, "conv3d/depth=3");
}

TEST_F(RecordingTest, AResultThatNoStoreTakesCostsItsRow) {
  options_.rounds = 1;
  fake_.program("").touch = [seen = 0](const Request&, Result& result) mutable {
    ++seen;
    if (seen == 1) result.busy_ns = std::nan("");
    if (seen == 2) result.metrics = {{"share", "", 1}, {"share", "", 2}};
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::coverage);
  EXPECT_EQ(tally.counts.at(Status::crashed), 2);
  EXPECT_EQ(tally.counts.at(Status::ok), 2);
  ASSERT_EQ(tally.failures.size(), 2u);
  EXPECT_TRUE(tally.failures[0].why.starts_with("answered with nonsense: "))
      << tally.failures[0].why;
  EXPECT_EQ(store().levels(tally.run).size(), 4u);
}

TEST_F(RecordingTest, ARunThatAnErrorEndsIsInterruptedAndSaysHowToFinishIt) {
  options_.rounds = 1;
  fake_.program("").touch = [seen = 0](const Request&, Result&) mutable {
    if (++seen == 3) throw Error(Exit::store, "the disk is full");
  };
  const std::string why = refusal_of([&] { run_suites(options_, 0, fake_); }, Exit::store);
  EXPECT_NE(
      why.find("the disk is full; `moegate run --resume 1 --db " + options_.db + "` finishes"),
      std::string::npos)
      << why;
  EXPECT_EQ(store().run_info(1).status, "interrupted");
  EXPECT_EQ(store().levels(1).size(), 2u);
  fake_.program("").touch = nullptr;
  EXPECT_EQ(run_suites(options_, 1, fake_).exit(), Exit::ok) << "nobody holds it";
}

TEST_F(RecordingTest, ProcessesOfOneRunHaveOneEnvironment) {
  options_.rounds = 2;
  const auto package = [](const char* version) {
    return EnvironmentItem{"package", "triton", version, ""};
  };
  // The second process has loaded more, which says nothing against it.
  fake_.program("").environment = [&](int process) {
    EnvironmentItems loaded = {package("3.5.1")};
    if (process > 1) loaded.push_back({"package", "torch", "2.9", ""});
    return in_order(loaded);
  };
  const int64_t run = run_suites(options_, 0, fake_).run;
  EXPECT_EQ(store().environment(run).size(), 2u);
  fake_.program("").processes = 0;
  fake_.program("").environment = [&](int process) {
    return EnvironmentItems{package(process > 1 ? "3.6.0" : "3.5.1")};
  };
  const std::string why = refusal_of([&] { run_suites(options_, 0, fake_); }, Exit::environment);
  EXPECT_NE(why.find("package triton 3.5.1 -> 3.6.0"), std::string::npos) << why;
}

TEST_F(RecordingTest, TheRowAtHandOfAnInterruptedRunIsNotStored) {
  options_.rounds = 1;
  fake_.program("").touch = [seen = 0](const Request&, Result&) mutable {
    if (++seen < 3) return;
    raise(SIGINT);
    throw Error(Exit::interrupted, "given up");  // as a worker process does
  };
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::interrupted);
  EXPECT_EQ(store().levels(tally.run).size(), 2u);
  EXPECT_NE(summary(tally, "run 1").find("(interrupted; `moegate run --resume 1"),
            std::string::npos);
  options_.worker.task = Task::verify;
  fake_.program("").touch = [](const Request&, Result&) { raise(SIGINT); };
  EXPECT_TRUE(summary(check_suites(options_, fake_), "verified").ends_with("(interrupted)"));
}

TEST_F(RecordingTest, TheProgressOfAResumedRunIsOfWhatIsLeft) {
  options_.rounds = 2;
  interrupt_at(6);  // in the second round, whose order is another
  const int64_t run = run_suites(options_, 0, fake_).run;
  ASSERT_EQ(store().done(run).size(), 6u);
  fake_.program("").touch = nullptr;
  testing::internal::CaptureStderr();
  run_suites(options_, run, fake_);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("[0/2] fake/rows="), std::string::npos) << said;
}

TEST_F(RecordingTest, OnlyCasesOfTheOperatorsAskedFor) {
  options_.ops = {"other"};
  EXPECT_THROW(run_suites(options_, 0, fake_), Error);
  options_.ops = {"fake", "other"};
  EXPECT_TRUE(options_.filtered());
  EXPECT_EQ(run_suites(options_, 0, fake_).counts.at(Status::ok), 12);
  RunOptions back;
  back.from_json(options_.to_json());
  EXPECT_EQ(back.ops, options_.ops);
  EXPECT_THROW(back.from_json("{}"), Error);
  EXPECT_THROW(back.from_json("{\"suites\": 7"), Error);
}

TEST(Tally, AFailureOfEveryRoundIsSaidOnce) {
  Result wrong;
  wrong.variant = "fused";
  wrong.status = Status::wrong;
  wrong.why = "y: all in row 63 of 64";
  Tally tally;
  testing::internal::CaptureStderr();
  {
    Progress progress(3);
    for (int round = 0; round < 2; ++round) tally.count("op/tokens=64", wrong, progress);
    wrong.why = "y: all in row 0 of 64";
    tally.count("op/tokens=64", wrong, progress);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t first = said.find("all in row 63 of 64");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("all in row 63 of 64", first + 1), std::string::npos) << said;
  EXPECT_NE(said.find("all in row 0 of 64"), std::string::npos) << "another reason: " << said;
  EXPECT_EQ(tally.failures.size(), 3u);
}

}  // namespace
}  // namespace moegate::test
