// SPDX-License-Identifier: Apache-2.0
// The gate end to end on the host: candidate, verdicts and exit codes. Slow-downs are written into
// the rows of a real run, because a test that waits for a noisy machine to be slow would be a noisy
// test.

#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class GateProgramTest : public ProgramTest {
 protected:
  GateProgramTest() {
    write("quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[small]\ntokens = 3, 20\n");
  }
  std::string run_arguments() const {
    return "run --suite ./quick.suite --device host --db r.sqlite --min-samples 10 --max-samples "
           "20 "
           "--budget 100ms --rounds 3";
  }
  /// A run whose rows are all quiet, so that how busy this machine is plays no part.
  void quiet_run(const std::string& sabotage = "none") const {
    saboteur(sabotage, run_arguments());
    alter("UPDATE result SET status = 'ok', why = '' WHERE status = 'noisy'");
  }
  /// As a store of another measurement: without the checksums of this one.
  void alter(const std::string& sql) const {
    Database((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE)
        .execute(sql + "; UPDATE result SET checksum = 0, verified_checksum = 0");
  }
  /// Makes the newest run's variant `factor` times as slow, beside its yardstick too, as another
  /// code of it would be.
  void slow_down(const std::string& variant, double factor) const {
    alter("UPDATE result SET code = '' WHERE variant = '" + variant + "'");
    alter("UPDATE result SET ratio = ratio * " + std::to_string(factor) + " WHERE variant = '" +
          variant +
          "' AND process_id IN (SELECT process_id FROM process WHERE run_id = "
          "(SELECT max(run_id) FROM run))");
  }
  /// The newest run with the levels of the first one, so that only what a test alters differs.
  void copy_levels() const {
    alter(
        "UPDATE result SET ratio = (SELECT avg(o.ratio) FROM result o JOIN process p USING "
        "(process_id) "
        "WHERE p.run_id = 1 AND o.case_id = result.case_id AND o.variant = result.variant)");
  }
  Outcome gate(const std::string& more = "--candidate candidate") const {
    return moegate("gate --db r.sqlite --out verdict.json --out report.md " + more);
  }
};

TEST_F(GateProgramTest, FirstRunIsTheCandidateSecondIsJudged) {
  quiet_run();
  EXPECT_EQ(gate("--require-baseline").exit, 22);
  const Outcome first = gate();
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_NE(first.out.find("recorded as candidate"), std::string::npos) << first.out;
  quiet_run();
  copy_levels();
  const Outcome second = gate();
  EXPECT_EQ(second.exit, 0) << second.out;
  EXPECT_NE(second.out.find("candidate, not blessed"), std::string::npos) << second.out;
  const Outcome again = gate("");
  EXPECT_NE(again.out.find("candidate, not blessed"), std::string::npos)
      << "without a flag that beside the store, else the verdict would be lost\n"
      << again.out;
  EXPECT_NE(read("verdict.json").find("\"exit\""), std::string::npos) << read("verdict.json");
  EXPECT_NE(read("report.md").find("PASS"), std::string::npos);
}

TEST_F(GateProgramTest, ANoisyNightIsNothingToCompareWith) {
  const auto disturb = [&](const std::string& where) {
    alter("UPDATE result SET status = 'noisy', why = 'the machine was busy' " + where);
  };
  quiet_run();
  disturb("");
  const Outcome noisy = gate();
  EXPECT_EQ(noisy.exit, 0) << noisy.err;
  EXPECT_NE(noisy.out.find("measured rows are too noisy"), std::string::npos) << noisy.out;
  const Outcome blessed =
      moegate("bless --db r.sqlite --baselines . --accept dirty --reason 'a start'");
  EXPECT_EQ(blessed.exit, 2) << blessed.out;
  EXPECT_NE(blessed.err.find("too noisy for a baseline"), std::string::npos) << blessed.err;
  EXPECT_EQ(shell("find . -name '*.tsv'").out, "") << "nothing recorded, nothing blessed";

  quiet_run();
  copy_levels();
  disturb("WHERE variant = 'fused'");
  EXPECT_NE(gate().out.find("NO BASELINE"), std::string::npos);
  quiet_run();
  copy_levels();
  const Outcome half = gate();
  EXPECT_EQ(half.out.rfind("PASS: 0 inconclusive, 2 new (not judged), ", 0), 0u) << half.out;
  quiet_run();
  copy_levels();
  slow_down("fused", 10);
  const Outcome slower = gate();
  EXPECT_EQ(slower.exit, 10) << "rows added later are judged too\n" << slower.out;
}

TEST_F(GateProgramTest, SlowerWrongBothAndGone) {
  quiet_run();
  ASSERT_EQ(gate().exit, 0);
  quiet_run();
  copy_levels();
  slow_down("fused", 2);
  const Outcome slower = gate();
  EXPECT_EQ(slower.exit, 10) << slower.out;
  EXPECT_NE(slower.out.find("fused"), std::string::npos) << slower.out;
  EXPECT_EQ(gate("--candidate candidate --fail-on accuracy").exit, 0);

  quiet_run("scale");
  copy_levels();
  EXPECT_EQ(gate().exit, 11);
  slow_down("fused", 2);
  EXPECT_EQ(gate().exit, 12);
  quiet_run("drop");
  copy_levels();
  EXPECT_EQ(gate().exit, 11);

  quiet_run("abort");
  copy_levels();
  EXPECT_EQ(gate().exit, 13);
  moegate(run_arguments());  // without the saboteurs: their cases are missing
  alter("UPDATE result SET status = 'ok', why = '' WHERE status = 'noisy'");
  copy_levels();
  const Outcome gone = gate();
  EXPECT_EQ(gone.exit, 13) << gone.out;
  EXPECT_NE(gone.out.find("saboteur"), std::string::npos) << gone.out;
}

TEST_F(GateProgramTest, AReplayOverrulesStoredNumbers) {
  quiet_run();
  ASSERT_EQ(gate().exit, 0);
  moegate(run_arguments() + " --keep-artifact");
  alter("UPDATE result SET status = 'ok', why = '' WHERE status = 'noisy'");
  copy_levels();
  slow_down("fused", 2);
  alter(
      "DELETE FROM result WHERE variant = 'saboteur' AND process_id IN (SELECT process_id FROM "
      "process WHERE run_id = 2)");
  const std::string partly = "--candidate candidate --fail-on latency,accuracy";
  EXPECT_EQ(gate(partly).exit, 10);
  const std::string kept = shell("printf %s artifacts/*/bin/moegate").out;
  ASSERT_FALSE(kept.empty());
  const Outcome replayed = gate(partly + " --replay-program " + kept);
  EXPECT_EQ(replayed.exit, 0) << replayed.out << replayed.err;
  EXPECT_NE(replayed.err.find("replaying 2 of"), std::string::npos) << replayed.err;
  EXPECT_NE(replayed.out.find("4 identical"), std::string::npos) << replayed.out;
  quiet_run();  // by another program: its code is not this one's
  copy_levels();
  slow_down("fused", 2);
  const Outcome other = gate(partly + " --replay-program " + kept);
  EXPECT_EQ(other.exit, 2) << other.out;
  EXPECT_NE(other.err.find("another program"), std::string::npos) << other.err;
}

TEST_F(GateProgramTest, InconclusiveFailsOnlyWhenAsked) {
  quiet_run();
  ASSERT_EQ(gate().exit, 0);
  quiet_run();
  copy_levels();
  alter(
      "UPDATE result SET code = '', ratio = ratio * (1 + process_id % 3) WHERE variant = 'fused'");
  EXPECT_EQ(gate().exit, 0);
  EXPECT_EQ(gate("--candidate candidate --fail-on latency,inconclusive").exit, 20);
}

TEST_F(GateProgramTest, ReportsAndComparesWhatIsStored) {
  quiet_run();
  quiet_run();
  copy_levels();
  for (const char* name : {"latency", "speedup", "accuracy", "roofline", "kernels", "runs"}) {
    const Outcome report = moegate(std::string("report ") + name + " --db r.sqlite --format csv");
    EXPECT_EQ(report.exit, 0) << name << report.err;
    EXPECT_NE(report.out.find(','), std::string::npos) << name;
  }
  EXPECT_EQ(moegate("gate --against 1 --run 2 --db r.sqlite").exit, 0);
  slow_down("fused", 2);
  EXPECT_EQ(moegate("gate --against 1 --run 2 --db r.sqlite").exit, 10);
  EXPECT_EQ(moegate("report no-such --db r.sqlite").exit, 2);
}

TEST_F(GateProgramTest, AnImpossiblyFastSpanIsFlagged) {
  ASSERT_EQ(moegate("doctor --device host --db r.sqlite").exit, 0);
  EXPECT_NE(query("r.sqlite", "SELECT value FROM ceiling WHERE name = 'read_bytes_per_s'"),
            "no row");
  alter("UPDATE ceiling SET value = 1");  // a byte per second: every span beats that
  quiet_run();
  EXPECT_EQ(query("r.sqlite", "SELECT min(impossible) FROM result"), "1");
}

TEST_F(GateProgramTest, AStoreFromTheFutureIsLeftAlone) {
  quiet_run();
  alter("PRAGMA user_version = 999");
  EXPECT_EQ(gate().exit, 30);
  EXPECT_EQ(moegate(run_arguments()).exit, 30);
  EXPECT_EQ(query("r.sqlite", "SELECT count(*) FROM run"), "1");
}

TEST_F(GateProgramTest, AMissingGpuIsAnEnvironmentFault) {
  const Outcome outcome =
      moegate("run --suite ./quick.suite --device cuda:7 --timer cupti --db r.sqlite");
  EXPECT_EQ(outcome.exit, 21) << outcome.err;
}

}  // namespace
}  // namespace moegate::test
