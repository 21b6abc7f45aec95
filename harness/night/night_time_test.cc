// SPDX-License-Identifier: Apache-2.0
// The night whose time is up, with scripted workers and a clock that they move.
#include "harness/night/night_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

TEST_F(TimedNightTest, WhatTheRunHadNoTimeForIsMissingAndNamed) {
  bless_now();  // 18 rows
  now_ = 0;
  night_.budget_s = 25;  // 15 of them until the run is to be over, 4 of them for checks
  const Night done = whole_night();
  EXPECT_LE(now_, 25 + 4) << "a row more for each of its phases";
  ASSERT_TRUE(done.verdict);
  const GateResult& result = done.verdict->result;
  EXPECT_EQ(done.verdict->exit, Exit::coverage) << sentence(result, done.verdict->exit);
  size_t unmeasured = 0;
  for (const CaseVerdict& v : result.cases) {
    if (v.why != "left out: the time was up before it was measured") continue;
    ++unmeasured;
    EXPECT_EQ(v.outcome, Outcome::missing);
    EXPECT_EQ(std::ranges::count(result.left_out, v.id.key + " " + v.id.variant), 1);
  }
  EXPECT_GT(unmeasured, 0u);
  EXPECT_LT(unmeasured, 18u);
  EXPECT_NE(sentence(result, Exit::ok).find(" left out for want of time (about "),
            std::string::npos);
  EXPECT_EQ(store().run_info(done.run).status, "interrupted") << "no candidate, and to be resumed";
}

TEST_F(TimedNightTest, AnUnchangedProgramIsKnownWithoutBeingMeasured) {
  program("").codes = {{"fused", "c0de"}, {"plain", "c1de"}};
  bless_now();
  now_ = 0;
  night_.budget_s = 25;
  const Night done = whole_night();
  ASSERT_TRUE(done.verdict);
  const GateResult& result = done.verdict->result;
  EXPECT_EQ(done.verdict->exit, Exit::ok) << sentence(result, done.verdict->exit);
  EXPECT_EQ(result.counts.at(Outcome::identical), 18);
  EXPECT_TRUE(result.left_out.empty());
  EXPECT_TRUE(std::ranges::any_of(result.notes, [](const std::string& note) {
    return note.find("were not measured for want of time and are identical") != std::string::npos;
  }));
  EXPECT_LT(
      std::ranges::count_if(fake_.journal,
                            [](const std::string& e) { return e.find("run fake/tokens=") == 0; }),
      2 * 3 * 18)
      << "it was cut";
}

TEST_F(TimedNightTest, ACandidateGrowsFromNightToNight) {
  rules_.baselines.candidates = folder_ / "candidates";
  program("").codes = {{"fused", "c0de"}, {"plain", "c1de"}};
  const fs::path path = baseline_path(folder_ / "candidates", "fake-gpu", "a");
  night_.suites = {"a"};
  night_.budget_s = 40;
  size_t rows = 0;
  int nights = 0;
  for (; rows < 16 && nights < 12; ++nights) {
    now_ = 0;
    const Night done = whole_night();
    ASSERT_TRUE(done.verdict);
    const GateResult& result = done.verdict->result;
    EXPECT_EQ(done.verdict->exit, Exit::ok) << sentence(result, done.verdict->exit);
    const size_t now = read_baseline(path).rows.size();
    EXPECT_GT(now, rows) << "night " << nights;
    rows = now;
  }
  EXPECT_EQ(rows, 16u);
  EXPECT_GT(nights, 1) << "the first night was cut";
}

TEST_F(TimedNightTest, ACandidateThatDoesNotGrowFailsTheSecondNight) {
  rules_.baselines.candidates = folder_ / "candidates";
  program("").noise = 2;  // no row is fit for a baseline
  night_.budget_s = 40;
  const auto next_night = [this] {
    now_ = 0;
    return whole_night().verdict->exit;
  };
  EXPECT_EQ(next_night(), Exit::ok) << "there has to be a first night";
  EXPECT_EQ(next_night(), Exit::coverage);
}

TEST_F(TimedNightTest, ANewRowThatTakesForEverIsStoppedAndCostsNoBlessedRow) {
  write_suite("a", "1, 2");
  bless_now();  // 6 rows
  for (const char* suite : {"a", "b"}) name_program(suite, "gone");
  program("").hello.variants.push_back(program("").hello.variants[0]);
  program("").hello.variants.back().name = "a_compiles";
  program("").seconds = [](const Request& request) {
    return request.variant == "a_compiles" ? 40 : 0;
  };
  program("").spans["fused"] = 2000;
  now_ = 0;
  night_.budget_s = 60;
  const Night done = whole_night();
  EXPECT_LE(now_, 60 + 10) << "a tenth of the budget, 10 s at least";
  ASSERT_TRUE(done.verdict);
  const auto came = outcomes(*done.verdict);
  for (const char* tokens : {"1", "2", "3"}) {
    EXPECT_EQ(came.at(std::string("fake/tokens=") + tokens + " fused"), Outcome::regressed);
    EXPECT_EQ(came.at(std::string("fake/tokens=") + tokens + " plain"), Outcome::pass);
  }
  const auto& cases = done.verdict->result.cases;
  const auto slow = std::ranges::find_if(cases, [](const CaseVerdict& v) {
    return v.id.variant == "a_compiles" &&
           v.why.find("raise the night's --budget") != std::string::npos;
  });
  ASSERT_NE(slow, cases.end());
  EXPECT_EQ(slow->outcome, Outcome::missing);
}

/// A host so busy that a third of the processes are noisy and a fifth never had a quiet launch.
class BusyNightTest : public TimedNightTest {
 protected:
  BusyNightTest() {
    FakeProgram& now = program("");
    now.hello.device.backend = Backend::host;
    now.hello.device.klass = "busy-host";
    now.hello.operators[0].yardstick = "plain";
    for (VariantDescription& variant : now.hello.variants) variant.backend = Backend::host;
    now.codes = {{"fused", "c0de"}, {"plain", "c1de"}};
    night_.device = "host";
    night_.backend = Backend::host;
    rules_.limits = [](Backend) { return Limits::host(); };
    options_.worker.device = "host";
  }
  void make_busy() {
    const auto touch = program("").touch;
    program("").touch = [this, touch](const Request& request, Result& result) {
      touch(request, result);
      const double fate = draw(0), load = draw(1);
      now_ += load;
      result.ratio *= std::exp((fate < 0.55 ? 1 : 0.1) * (load - 0.5));
      result.span_ns *= std::exp(load);
      if (result.status != Status::ok || fate > 0.55) return;
      result.status = Status::noisy;
      if (fate > 0.2) return;
      result.status = Status::bad_timer;
      result.samples = 0;
      result.flags = kPreempted;
      result.span_ns = result.ratio = 0;
    };
  }
  double draw(uint64_t stream) {
    return static_cast<double>(random_bits(22, stream, drawn_++) >> 11) * 0x1p-53;
  }

  uint64_t drawn_ = 0;
};

TEST_F(BusyNightTest, UnchangedNightsAreSilent) {
  bless_now();
  make_busy();
  keep_program(night_.artifacts());
  const std::string kept =
      program_of({.program = program_hash(own_program())}, {night_.artifacts()}, calls_.build, 1);
  fake_.program(kept) = program("");  // what is off is replayed
  for (int night = 0; night < 22; ++night) {
    now_ = 0;
    night_.budget_s = night % 2 == 0 ? 40 : 120;
    const Night done = whole_night();
    ASSERT_TRUE(done.verdict);
    const std::string first = sentence(done.verdict->result, done.verdict->exit);
    EXPECT_EQ(done.verdict->exit, Exit::ok) << "night " << night << ": " << first;
    EXPECT_TRUE(first.starts_with("PASS: ")) << "night " << night << ": " << first;
  }
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
  EXPECT_TRUE(notes[0].starts_with("Verification had no time for 10 of 20 rows")) << notes[0];
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

}  // namespace
}  // namespace moegate::test
