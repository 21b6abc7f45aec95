// SPDX-License-Identifier: Apache-2.0
// Kernels that lose precision within every tolerance, judged by the gate against a candidate of
// other inputs, without a replay.
#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class PrecisionProgramTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (device_ == "host") return;
    const Outcome devices = moegate("list devices --format csv");
    if (devices.out.find("cuda:0") == std::string::npos) GTEST_SKIP() << devices.err;
  }
  /// A run on inputs of this seed, as rows of seed 1.
  void run(const std::string& sabotage, int seed) const {
    const std::string cases = "topk = 8\nhidden = 768\nseed = " + std::to_string(seed) + "\n";
    write("sums.suite", "op = moe_sum\n[sum]\ntokens = 64\n" + cases +
                            "[down]\nop = moe_down\ntokens = 16\n" + cases +
                            "experts = 8\ninter = 256\n");
    saboteur(
        sabotage,
        "run --suite ./sums.suite --db r.sqlite --min-samples 10 --max-samples 20 --budget 20ms "
        "--rounds 2 --device " +
            device_);
    Database db((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE);
    // Levels as of a quiet machine: how busy this one is plays no part.
    db.execute(
        "UPDATE result SET checksum = 0, verified_checksum = 0, impossible = 0, suspect_warm = 0, "
        "invalid = 0, flags = 0, slow = 0");
    if (device_ != "host") {
      db.execute(
          "UPDATE result SET status = 'ok', why = '', samples = 20, span_ns = 1e5, min_ns = 9e4, "
          "mean_ns = 1e5 WHERE status <> 'wrong'");
    } else {
      db.execute(
          "UPDATE result SET status = 'ok', why = '', timer = 'clock', samples = 20, span_ns = "
          "1e5, "
          "min_ns = 9e4, ratio = 1, ratio_low = 1, ratio_high = 1, mean_ratio = 1, mean_ns = 1e5, "
          "yardstick_code = 'c0de', yardstick = iif(variant IN ('per_token', 'gather'), variant, "
          "'per_token'), judged = iif(variant IN ('per_token', 'gather'), 'is_yardstick', 'ratio') "
          "WHERE status <> 'wrong'");
    }
    for (const char* table : {"result", "run_case"}) {
      db.execute(
          std::string("UPDATE ") + table +
          " AS r SET case_id = (SELECT old.case_id FROM bench_case old, bench_case new WHERE "
          "new.case_id = r.case_id AND old.key = replace(new.key, ',seed=500', ''))");
    }
  }
  std::string device_ = "host", gate_ = "gate --candidate candidate";

  Outcome gate() const { return moegate(gate_ + " --db r.sqlite"); }
  /// The verdict on a run of other inputs says this.
  void expect_seen(const std::string& sabotage, const std::string& why) {
    run(sabotage, 500);
    const Outcome outcome = gate();
    EXPECT_EQ(outcome.exit, 11) << sabotage << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find(why), std::string::npos) << sabotage << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("FAIL (exit 11): 1 wrong"), std::string::npos)
        << sabotage << outcome.out << outcome.err;
  }
};

TEST_F(PrecisionProgramTest, WhatIsLostIsSeenOnOtherInputsAndHonestRowsAreNot) {
  run("none", 1);
  ASSERT_EQ(gate().exit, 0);
  const std::string recorded = shell("cat candidate/*/sums.tsv").out;
  EXPECT_NE(recorded.find(" excess="), std::string::npos) << recorded;
  run("none", 500);
  const Outcome honest = gate();
  EXPECT_EQ(honest.exit, 0) << honest.out << honest.err;
  expect_seen("weight-in-bf16", "each row is off by its own factor (rms 0.1");
  expect_seen("last-group:0.999", "the whole output");
  // What moe_sum states that its kernels round fails without a baseline, too.
  expect_seen("row:1.001", "row 37 has the most");
}

TEST_F(PrecisionProgramTest, WhatIsGainedIsSaid) {
  run("last-group:0.999", 1);
  ASSERT_EQ(gate().exit, 0);
  run("none", 500);
  const Outcome outcome = gate();
  EXPECT_EQ(outcome.exit, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("outputs of 1 row are more precise than the base's; moe_down/"),
            std::string::npos)
      << outcome.out;
}

class GpuPrecisionTest : public PrecisionProgramTest {
 protected:
  // A part of a suite's variants makes no candidate.
  GpuPrecisionTest() {
    device_ = "cuda --variant '^saboteur$'", gate_ = "gate --against 1 --run latest";
  }
};

TEST_F(GpuPrecisionTest, WhatIsLostIsSeenOnOtherInputs) {
  run("none", 1);
  run("none", 500);
  const Outcome honest = gate();
  EXPECT_EQ(honest.exit, 0) << honest.out << honest.err;
  for (const char* slip : {"row:1.001", "column:1.001", "all:1.0005", "bf16-sums", "fp16-sums",
                           "toward-zero", "noise:0.1", "activation:1e-3"}) {
    run(slip, 500);
    const Outcome both = gate();
    EXPECT_EQ(both.exit, 11) << slip << both.out << both.err;
    EXPECT_NE(both.out.find("FAIL (exit 11): 2 wrong"), std::string::npos)
        << slip << both.out << both.err;
  }
  expect_seen("weight-in-bf16", "each row is off by its own factor (rms 0.1");
  expect_seen("last-group:0.99", "");
  expect_seen("expert:1.001", "");
}

}  // namespace
}  // namespace moegate::test
