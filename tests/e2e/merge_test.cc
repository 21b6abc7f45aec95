// SPDX-License-Identifier: Apache-2.0
// A campaign by hand, as a job array would do it: shards, each into a store of its own, merged and
// judged as one run.
#include <algorithm>

#include "harness/store/content_fixture.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class MergeProgramTest : public ProgramTest {
 protected:
  MergeProgramTest() {
    const std::string head = "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[m]\ntokens = ";
    write("one.suite", head + "3, 4\n");
    write("two.suite", head + "5, 6, 7, 8\n");
  }
  /// A task of an array of two.
  Outcome task(int id, const std::string& db, const std::string& more = "") const {
    return shell(fmt::format(
        "SLURM_ARRAY_JOB_ID=17 SLURM_CLUSTER_NAME=c SLURM_ARRAY_TASK_ID={} SLURM_ARRAY_TASK_MIN=1 "
        "SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=2 '{}' run --suite ./one.suite --suite "
        "./two.suite --device host --shard slurm --campaign slurm --label night --db {} --rounds 2 "
        "--min-samples 10 --max-samples 20 --budget 100ms {}",
        id, program(), db, more));
  }
  Outcome gate(const std::string& db) const {
    return moegate("gate --db " + db + " --run night --out v.json");
  }
  std::string content(const std::string& name) const {
    Database db((folder_ / name).string(), SQLITE_OPEN_READWRITE);
    return content_of(db);
  }
};

TEST_F(MergeProgramTest, ShardsBecomeOneRunForEveryCommand) {
  ASSERT_EQ(task(1, "1.sqlite").exit, 0);
  ASSERT_EQ(task(2, "2.sqlite").exit, 0);
  const Outcome half = moegate("store merge half.sqlite 2.sqlite");
  EXPECT_EQ(half.exit, 0) << half.err;
  EXPECT_NE(
      half.out.find("run 1 'night': 1 of 2 shards\n  shard 1 is absent; to run it: moegate run "
                    "--suite ./one.suite --suite ./two.suite "),
      std::string::npos)
      << half.out;
  EXPECT_NE(half.out.find(" --db FILE --shard 1/2 --campaign "), std::string::npos) << half.out;
  const Outcome absent = gate("half.sqlite");
  EXPECT_EQ(absent.exit, 13) << absent.out;
  EXPECT_NE(absent.out.find("; shard 1 of 2 absent"), std::string::npos) << absent.out;
  EXPECT_NE(absent.out.find("Shard 1 of 2 is absent:"), std::string::npos) << absent.out;
  EXPECT_NE(read("v.json").find("\"command\": \"moegate run "), std::string::npos);
  EXPECT_NE(moegate("list runs --db half.sqlite").out.find("interrupted, 1 of 2 shards"),
            std::string::npos);

  ASSERT_EQ(moegate("store merge half.sqlite 1.sqlite").exit, 0);
  ASSERT_EQ(moegate("store merge all.sqlite 1.sqlite 2.sqlite 1.sqlite").exit, 0);
  // But for the verdicts of the gate above.
  Database((folder_ / "half.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute("DELETE FROM verdict");
  EXPECT_EQ(content("half.sqlite"), content("all.sqlite"));
  EXPECT_EQ(gate("all.sqlite").exit, 0);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM result"), "24")
      << "6 cases, 2 variants, 2 rounds";
  EXPECT_EQ(query("all.sqlite", "SELECT count(DISTINCT suite) FROM run_case"), "2");
  const Outcome report = moegate("report latency --db all.sqlite --format csv");
  EXPECT_EQ(std::ranges::count(report.out, '\n'), 13) << report.out;
  const Outcome runs = moegate("list runs --db all.sqlite --format csv");
  EXPECT_NE(runs.out.find("complete, 2 of 2 shards"), std::string::npos) << runs.out;

  // Judged against another night, which was measured whole.
  shell("'" + program() +
        "' run --suite ./one.suite --suite ./two.suite --device host --rounds 2 "
        "--min-samples 10 --max-samples 20 --budget 100ms --label whole --db all.sqlite");
  const Outcome compared =
      moegate("gate --against night --run whole --db all.sqlite --fail-on coverage");
  EXPECT_EQ(compared.exit, 0) << compared.out;
  EXPECT_NE(compared.out.find("of 12 rows"), std::string::npos) << compared.out;
  EXPECT_EQ(moegate("run --resume night --db half.sqlite").exit, 2);
}

TEST_F(MergeProgramTest, ATaskThatIsStartedAgainFindsItsShard) {
  ASSERT_EQ(task(1, "1.sqlite").exit, 0);
  const Outcome again = task(1, "1.sqlite");
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_NE(again.err.find("shard 1 of 2 is complete: run 1"), std::string::npos) << again.err;
  EXPECT_EQ(query("1.sqlite", "SELECT count(*) FROM run"), "1");
  const Outcome other = task(1, "1.sqlite", "--filter tokens=3,");
  EXPECT_EQ(other.exit, 2) << other.err;
  EXPECT_NE(other.err.find("has other options"), std::string::npos) << other.err;
}

TEST_F(MergeProgramTest, WhatCannotBeMergedIsRefusedInOneLine) {
  ASSERT_EQ(task(1, "1.sqlite").exit, 0);
  Database((folder_ / "1.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute("UPDATE run SET status = 'running'");
  const Outcome unfinished = moegate("store merge out.sqlite 1.sqlite");
  EXPECT_EQ(unfinished.exit, 2);
  EXPECT_EQ(
      unfinished.err,
      "moegate: 1.sqlite: run 1 'night' (shard 1 of 2) is running; `moegate run --resume 1 --db "
      "1.sqlite` finishes it; --leave-unfinished merges without it\n");
  EXPECT_EQ(shell("ls out.sqlite*").out, "") << "nothing is made of what is refused";
  EXPECT_EQ(moegate("store merge out.sqlite 1.sqlite --leave-unfinished").exit, 13)
      << "nothing is left";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.sqlite"));
  write("empty.sqlite", "");
  EXPECT_EQ(moegate("store merge empty.sqlite 1.sqlite").exit, 2);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "empty.sqlite")) << "it was there before";
  EXPECT_EQ(moegate("merge").exit, 2);
  EXPECT_EQ(moegate("store merge 1.sqlite").exit, 2) << "nothing to put into it";
  EXPECT_EQ(moegate("store merge made.sqlite none.sqlite").exit, 30);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made.sqlite"));
  EXPECT_EQ(moegate("run --suite ./one.suite --shard slurm --db x.sqlite").exit, 2);
  EXPECT_EQ(moegate("run --suite ./one.suite --campaign night --db x.sqlite").exit, 2);
}

}  // namespace
}  // namespace moegate::test
