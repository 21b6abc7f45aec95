// SPDX-License-Identifier: Apache-2.0
// Why rows differ, end to end on the host: what a host knows of it, and what stored counters say.
#include "harness/report/report_fixture.h"
#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class WhyRowsDifferTest : public ProgramTest {
 protected:
  WhyRowsDifferTest() {
    write("quick.suite", "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[s]\ntokens = 3\n");
  }
  static constexpr const char* kQuick =
      "--suite ./quick.suite --device host --min-samples 10 --max-samples 20 --budget 100ms ";
};

TEST_F(WhyRowsDifferTest, OfTwoRunsOfAHost) {
  for (const char* label : {"before", "after"}) {
    const Outcome run =
        moegate("run " + std::string(kQuick) + "--rounds 2 --label " + std::string(label));
    ASSERT_EQ(run.exit, 0) << run.err;
  }
  Outcome why = moegate("report why --against before --run after");
  EXPECT_EQ(why.exit, 0) << why.err;
  EXPECT_EQ(why.out.rfind("run 2 'after' against run 1 'before', on ", 0), 0u) << why.out;
  EXPECT_NE(why.out.find("of both sides a host's counters are not read; the same code"),
            std::string::npos)
      << why.out;
  EXPECT_EQ(why.out.find("moegate profile"), std::string::npos) << "a host has nothing to count";

  // As if both had been counted, and the head's fused read its input twice.
  for (const auto& [of, bytes] : {std::pair("1", "1e6"), std::pair("2", "2e6")}) {
    const std::string sql =
        "INSERT INTO run (label, started, finished, status, device_id, protocol, timer, flush, "
        "rounds, git_sha, dirty, build, host, command, options, program, uuid, campaign, task) "
        "SELECT '', started, finished, status, device_id, protocol, '', flush, rounds, git_sha, "
        "dirty, build, host, command, options, '', 'u" +
        std::string(of) + "', '', 'counters' FROM run WHERE run_id = " + of +
        ";INSERT INTO tag SELECT max(run_id), 'why_of', '" + of + "' FROM run" +
        ";INSERT INTO process (run_id, round, pid, started, uuid) SELECT max(run_id), 0, 1, '', "
        "uuid FROM run" +
        ";INSERT INTO run_case SELECT (SELECT max(run_id) FROM run), case_id, suite, section, "
        "facts FROM run_case WHERE run_id = 1"
        ";CREATE TEMP TABLE copied AS SELECT * FROM result WHERE variant LIKE 'fused%' LIMIT 1"
        ";UPDATE copied SET result_id = (SELECT max(result_id) + 1 FROM result), process_id = "
        "(SELECT max(process_id) FROM process), status = 'ok', timer = '', samples = 0, span_ns = "
        "0, "
        "checksum = 0"
        ";INSERT INTO result SELECT * FROM copied"
        ";INSERT INTO metric SELECT result_id, -1, 'dram__bytes_read.sum', 'bytes', " +
        bytes + " FROM copied; DROP TABLE copied";
    Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE).execute(sql);
  }
  const std::string variant =
      query("results.sqlite", "SELECT variant FROM result WHERE timer = '' LIMIT 1");
  why = moegate("report why --against 1 --run 2 --variant '^" + variant + "$' --format csv");
  EXPECT_EQ(why.exit, 0) << why.err;
  EXPECT_NE(why.out.find("dram__bytes_read.sum,1e+06,2e+06,bytes,1.0000"), std::string::npos)
      << why.out;
}

TEST_F(WhyRowsDifferTest, OfAnAbNoRowThatItTookForEqual) {
  // A busy machine must not look like a file that the programs read and that changed.
  const Outcome ab = moegate("ab --base program=" + program() + " --fail-at 900% " + kQuick +
                             "--rounds 2,2,0 --fail-on accuracy");
  ASSERT_EQ(ab.exit, 0) << ab.err;
  ASSERT_EQ(query("results.sqlite", "SELECT group_concat(DISTINCT outcome) FROM verdict"),
            "identical");
  const Outcome why = moegate("report why --against 1 --run 2 --format csv");
  EXPECT_EQ(why.exit, 0) << why.err;
  EXPECT_NE(why.out.find(",nothing,nothing differs: judged equal; of both sides a host's counters"),
            std::string::npos)
      << why.out;
  EXPECT_EQ(why.out.find(",unknown,"), std::string::npos) << why.out;
}

TEST_F(WhyRowsDifferTest, WhereWarpsWaitInTwoRunsThatSampledIt) {
  const std::string db = (folder_ / "stalls.sqlite").string();
  add_stalled_run(db, 10, 30);
  add_stalled_run(db, 25, 28);
  const Outcome why = moegate("report why --against 1 --run 2 --db stalls.sqlite");
  EXPECT_EQ(why.exit, 0) << why.err;
  EXPECT_EQ(why.out.rfind("Where warps wait, run 1 'x' beside run 2 'x'", 0), 0u) << why.out;
  EXPECT_NE(why.out.find("BAR.SYNC"), std::string::npos) << why.out;
  EXPECT_EQ(moegate("report why --against 1 --run 2 --db stalls.sqlite --filter nothing").exit, 13);
  const Outcome csv = moegate("report why --against 1 --run 2 --db stalls.sqlite --format csv");
  EXPECT_EQ(csv.exit, 2);
  EXPECT_NE(csv.err.find("moegate report stalls"), std::string::npos) << csv.err;
}

TEST_F(WhyRowsDifferTest, AnAbOfAHostSaysNothingUnlessAsked) {
  const std::string ab = "ab --base variant=chain --head variant=fused " + std::string(kQuick) +
                         "--rounds 2,2,0 --fail-on accuracy ";
  Outcome compared = moegate(ab + "--out v.json");
  ASSERT_EQ(compared.exit, 0) << compared.err;
  EXPECT_EQ(read("v.json").find("\"cause\""), std::string::npos) << read("v.json");
  compared = moegate(ab + "--why all --out v.json");
  ASSERT_EQ(compared.exit, 0) << compared.err;
  EXPECT_NE(read("v.json").find("a host's counters are not read"), std::string::npos)
      << read("v.json");
  EXPECT_EQ(moegate(ab + "--why perhaps").exit, 2);
}

}  // namespace
}  // namespace moegate::test
