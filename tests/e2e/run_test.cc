// SPDX-License-Identifier: Apache-2.0
// Measuring end to end on the host: what a run stores, what a misbehaving variant costs, how a run
// is finished, split and repeated.
#include <chrono>
#include <csignal>
#include <thread>

#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

// Two cases, few samples: enough for every path, quick enough for every build.
constexpr const char* kTwoCases =
    "--device host --min-samples 10 --max-samples 20 --budget 100ms --rounds 2 ";
constexpr const char* kSuite = R"(op = topk_sort
experts = 16
topk = 2
hidden = 64
[small]
tokens = 3, 20
)";

class RunTest : public ProgramTest {
 protected:
  /// Results stored so far.
  int rows() const { return number("results.sqlite", "SELECT count(*) FROM result"); }
  RunTest() { write("quick.suite", kSuite); }
  std::string run(const std::string& more = "") const {
    return std::string("run --suite ./quick.suite ") + kTwoCases + more;
  }
};

TEST_F(RunTest, TheYardsticksWorkspaceIsNoMemoryThatAVariantKeeps) {
  write("s.suite",
        "op = w4_down\ntokens = 512\nexperts = 2\ntopk = 2\nhidden = 64\ninter = 1024\n[s]\n");
  const Outcome outcome = moegate(
      "run --suite s.suite --device host --rounds 1 --min-samples 10 --max-samples 20 --budget "
      "50ms --variant expert_once");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
}

TEST_F(RunTest, StoresEveryCaseVariantAndRound) {
  const Outcome outcome = moegate(run("--label first --tag pr=42"));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM result"),
            "8");  // 2 cases, 2 variants, 2 rounds
  EXPECT_EQ(query("results.sqlite", "SELECT count(DISTINCT process_id) FROM result"), "2");
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM accuracy WHERE ok = 1"), "40");
  // Eight problem sets with the same eight seeds for everybody.
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM seed_error"), "64");
  EXPECT_EQ(query("results.sqlite", "SELECT count(DISTINCT seed) FROM seed_error"), "8");
  EXPECT_EQ(query("results.sqlite", "SELECT min(span_ns > 0 AND samples >= 10) FROM result"), "1");
  EXPECT_EQ(query("results.sqlite", "SELECT max(ratio) FROM result WHERE variant = 'chain'"),
            "1.0");
  EXPECT_EQ(query("results.sqlite", "SELECT value FROM tag WHERE name = 'pr'"), "42");
  EXPECT_EQ(query("results.sqlite", "SELECT status FROM run WHERE label = 'first'"), "complete");
  EXPECT_EQ(
      query("results.sqlite",
            "SELECT min(json_extract(facts, '$.active_experts') BETWEEN 2 AND 16) FROM run_case"),
      "1");
}

TEST_F(RunTest, ASuiteSaysHowItIsRunAndWhatEndsIt) {
  write("recipe.suite",
        "[run]\nrounds = 3\nmin-samples = 10\nmax-samples = 20\nbudget = 100ms\nreport = speedup\n"
        "[small]\nop = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\ntokens = 3, 20\n");
  const Outcome outcome =
      moegate("run --suite ./recipe.suite --device host --rounds 1 --filter =3,");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("before and after: every variant"), 0u) << outcome.out;
  EXPECT_EQ(rows(), 2) << "one round was typed";
  EXPECT_EQ(query("results.sqlite", "SELECT max(samples) <= 20 FROM result"), "1");
  EXPECT_NE(number("results.sqlite", "SELECT count(*) FROM ceiling"), 0) << "of a new store";
  Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute("UPDATE run SET status = 'interrupted'");
  EXPECT_EQ(moegate("run --resume latest").out.find("before and after: every variant"), 0u);
}

TEST_F(RunTest, DryRunListsAndStoresNothing) {
  const Outcome outcome = moegate(run("--dry-run"));
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_NE(outcome.out.find("topk_sort/experts=16,hidden=64,tokens=20,topk=2 fused"),
            std::string::npos)
      << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results.sqlite"));
}

TEST_F(RunTest, FilterKernelAndAxisNarrow) {
  EXPECT_EQ(moegate(run("--filter tokens=3, --variant '^fused$' --axis unit=16,32")).exit, 0);
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM result"), "4");  // 2 units, 2 rounds
  EXPECT_EQ(query("results.sqlite", "SELECT group_concat(DISTINCT variant) FROM result"), "fused");
}

TEST_F(RunTest, ShardsTogetherAreTheWhole) {
  EXPECT_EQ(moegate(run("--shard 1/2")).exit, 0);
  EXPECT_EQ(moegate(run("--shard 2/2")).exit, 0);
  EXPECT_EQ(
      query("results.sqlite", "SELECT count(DISTINCT case_id) || ' ' || count(*) FROM result"),
      "2 8");
}

TEST_F(RunTest, WrongOutputsAreCaughtAndNotTimed) {
  for (const char* sabotage : {"scale", "drop", "unwritten", "overrun"}) {
    const std::string db = std::string("--db ") + sabotage + ".sqlite";
    const Outcome outcome = saboteur(sabotage, run(db));
    EXPECT_EQ(outcome.exit, 11) << sabotage << ": " << outcome.err;
    EXPECT_EQ(query(std::string(sabotage) + ".sqlite",
                    "SELECT group_concat(DISTINCT status) || ' ' || sum(samples) FROM result "
                    "WHERE variant = 'saboteur'"),
              "wrong 0")
        << sabotage;
  }
}

TEST_F(RunTest, AVariantThatGoesWrongWhileTimedPublishesNoLatency) {
  const Outcome outcome = saboteur("late:40", run("--filter tokens=3,"));
  EXPECT_EQ(outcome.exit, 11) << outcome.err;
  EXPECT_EQ(query("results.sqlite",
                  "SELECT group_concat(DISTINCT status || samples || span_ns) FROM result "
                  "WHERE variant = 'saboteur'"),
            "wrong00.0");
  EXPECT_NE(query("results.sqlite", "SELECT why FROM result WHERE variant = 'saboteur'")
                .find("in timed launches"),
            std::string::npos);
}

TEST_F(RunTest, ADyingVariantCostsItsRowsOnly) {
  for (const char* sabotage : {"abort", "segv", "throw"}) {
    const std::string db = std::string(sabotage) + ".sqlite";
    const Outcome outcome = saboteur(sabotage, run("--db " + db));
    EXPECT_EQ(outcome.exit, 13) << sabotage << ": " << outcome.err;
    EXPECT_EQ(
        query(db, "SELECT count(*) FROM result WHERE status = 'crashed' AND variant = 'saboteur'"),
        "4");
    EXPECT_EQ(query(db, "SELECT count(*) FROM result WHERE status IN ('ok', 'noisy')"), "8");
    EXPECT_EQ(query(db, "SELECT status FROM run"), "complete");
  }
}

TEST_F(RunTest, AHangingVariantIsATimeout) {
  const Outcome outcome = saboteur("hang", run("--case-timeout 3s --filter tokens=3,"));
  EXPECT_EQ(outcome.exit, 13) << outcome.err;
  EXPECT_EQ(
      query("results.sqlite", "SELECT group_concat(variant) FROM result WHERE status = 'timeout'"),
      "saboteur,saboteur");
}

TEST_F(RunTest, ChangingOutputsAreNotDeterministic) {
  EXPECT_EQ(saboteur("flip", run()).exit, 0);
  EXPECT_EQ(query("results.sqlite",
                  "SELECT group_concat(DISTINCT variant) FROM result WHERE deterministic = 0"),
            "saboteur");
}

TEST_F(RunTest, AnInterruptedRunIsKeptAndResumed) {
  // Far more rounds than anybody waits for, ended by the signal of Ctrl-C once there is something
  // to keep.
  Outcome outcome;
  std::thread running([&] {
    outcome = shell("echo $$ >pid; exec " + program() +
                    " run --suite ./quick.suite --device host --min-samples 10 --max-samples 20 "
                    "--budget 50ms --rounds 100000");
  });
  while (rows() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(std::stoi(read("pid")), SIGINT);
  running.join();
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_EQ(query("results.sqlite", "SELECT status FROM run"), "interrupted");
  EXPECT_GT(rows(), 0);
  // Finishing as asked would take for ever too: one more round than was begun is left to do.
  const std::string sql =
      "UPDATE run SET options = json_set(options, '$.rounds', (SELECT max(round) + 2 FROM "
      "process))";
  Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE).execute(sql);
  const Outcome resumed = moegate("run --resume latest");
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(query("results.sqlite",
                  "SELECT group_concat(DISTINCT n) FROM (SELECT count(*) AS n FROM result "
                  "JOIN process USING (process_id) GROUP BY round)"),
            "4");  // every round whole, nothing twice
  EXPECT_EQ(query("results.sqlite", "SELECT status FROM run"), "complete");
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM run"), "1");
}

TEST_F(RunTest, ReproPrintsAndRepeatsARow) {
  ASSERT_EQ(moegate(run("--sample-seed 20261122")).exit, 0);
  const Outcome printed = moegate("run --like 1 --dry-run");
  EXPECT_EQ(printed.exit, 0) << printed.err;
  EXPECT_NE(printed.out.find("moegate run --suite ./quick.suite"), std::string::npos)
      << printed.out;
  EXPECT_NE(printed.out.find(" --sample-seed 20261122 "), std::string::npos) << printed.out;
  EXPECT_EQ(moegate("run --like 1").exit, 0);
  EXPECT_EQ(query("results.sqlite", "SELECT run_id || name || value FROM tag"), "2repeat1");
  EXPECT_NE(moegate("report latency --format csv").out.find(",fused,"), std::string::npos)
      << "a repeat is not the latest run";
  EXPECT_EQ(query("results.sqlite",
                  "SELECT count(DISTINCT case_id || variant) FROM result JOIN process "
                  "USING (process_id) WHERE run_id = 2"),
            "1");
}

TEST_F(RunTest, ReproKnowsASuiteThatWasGivenWithoutAFolder) {
  const std::string fused = "--variant fused --filter tokens=3,";
  ASSERT_EQ(moegate(std::string("run --suite quick.suite ") + kTwoCases + fused).exit, 0);
  const Outcome again = moegate("run --like 1");
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_NE(again.out.find("--suite quick.suite"), std::string::npos) << again.out;
}

TEST_F(RunTest, ReproNamesTheCommandOfAProfiler) {
  ASSERT_EQ(moegate(run("--variant fused --filter tokens=3,")).exit, 0);
  const Outcome host = moegate("run --like 1 --under ncu");
  EXPECT_EQ(host.exit, 2);
  EXPECT_NE(host.err.find("--under ncu: row 1 was measured on the host"), std::string::npos)
      << host.err;
  EXPECT_EQ(moegate("run --like 1 --under ncu --under nsys").exit, 2);
  Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute("UPDATE device SET backend = 'cuda'");
  // A stand-in for each tool takes the command as the shell reads it.
  write("ncu", "#!/bin/sh\nprintf '<%s>' \"$@\" >ncu.txt\n");
  write("nsys", "#!/bin/sh\nprintf '<%s>' \"$@\" >nsys.txt\n");
  shell("chmod +x ncu nsys");
  for (const std::string tool : {"ncu", "nsys"}) {
    const Outcome ran =
        shell("PATH=.:$PATH; eval \"$(" + program() + " run --like 1 --under " + tool + ")\"");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    const std::string words = read(tool + ".txt");
    EXPECT_NE(words.find("<moegate><run><--suite><./quick.suite>"), std::string::npos) << words;
    EXPECT_NE(words.find("<--variant><^fused$><--device><cuda><--profile>"), std::string::npos)
        << words;
  }
  EXPECT_NE(read("ncu.txt").find("<--nvtx-include><moegate/>"), std::string::npos);
  EXPECT_NE(read("nsys.txt").find("<--output=row-1>"), std::string::npos);
}

TEST_F(RunTest, BenchmarkJsonHasOneRepetitionPerRound) {
  ASSERT_EQ(moegate(run("--out b.json --variant fused --filter tokens=3,")).exit, 0);
  const std::string json = read("b.json");
  EXPECT_NE(json.find("\"benchmarks\""), std::string::npos);
  EXPECT_NE(json.find("\"repetition_index\": 1"), std::string::npos) << json;
  EXPECT_NE(json.find("tokens=3,topk=2/fused"), std::string::npos);
  const bool release = query("results.sqlite", "SELECT build LIKE '%Release%' FROM run") == "1";
  EXPECT_NE(json.find(release ? "\"library_build_type\": \"release\"" : "\"debug\""),
            std::string::npos)
      << "of what was measured, not of the library that writes it";
  // With `compare.py -a` only these are shown.
  for (const char* aggregate : {"mean", "median", "stddev", "cv"}) {
    EXPECT_NE(json.find(fmt::format("\"aggregate_name\": \"{}\"", aggregate)), std::string::npos)
        << json;
  }
  for (const char* stated : {"device", "driver", "build", "protocol", "timer", "flush"}) {
    EXPECT_NE(json.find(fmt::format("\"{}\": \"", stated)), std::string::npos) << json;
  }
}

TEST_F(RunTest, FewerProblemSetsAreAConditionOfTheRun) {
  const std::string fused = "--variant fused --filter tokens=3, ";
  ASSERT_EQ(moegate(run(fused + "--label all")).exit, 0);
  ASSERT_EQ(moegate(run(fused + "--sets 1 --label one")).exit, 0);
  EXPECT_EQ(
      query("results.sqlite", "SELECT group_concat(run_id || value) FROM tag WHERE name = 'sets'"),
      "21");
  EXPECT_EQ(query("results.sqlite",
                  "SELECT group_concat(DISTINCT value) FROM metric WHERE name = 'problem_sets'"),
            "8.0,1.0");
  const Outcome compared = moegate("gate --against all --run one");
  EXPECT_EQ(compared.exit, 2) << compared.out;
  EXPECT_NE(compared.err.find("lines,sets=1"), std::string::npos) << compared.err;
  EXPECT_NE(moegate("run --like 3 --dry-run").out.find("--sets 1"), std::string::npos);
}

TEST_F(RunTest, WarmAndColdAreDifferentCases) {
  ASSERT_EQ(moegate(run("--cache both --variant fused --filter tokens=3,")).exit, 0);
  EXPECT_EQ(query("results.sqlite", "SELECT count(DISTINCT key) FROM bench_case"), "2");
}

TEST_F(RunTest, AHostHasNoCountersAndSaysSo) {
  const Outcome outcome = moegate("profile --suite tiny --device host --db p.sqlite");
  EXPECT_EQ(outcome.exit, 21) << outcome.err;
  EXPECT_EQ(outcome.err,
            "moegate: `moegate profile` reads counters on a GPU only; "
            "give --device cuda:N where there is a GPU\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "p.sqlite"));
  ASSERT_EQ(moegate(run("--variant fused --filter tokens=3,")).exit, 0);
  const Outcome report = moegate("report counters");
  EXPECT_EQ(report.exit, 2);
  EXPECT_NE(report.err.find("no finished run of `moegate profile` with counters; its runs: 1"),
            std::string::npos)
      << report.err;
  const Outcome two = moegate("profile stalls energy --suite tiny");
  EXPECT_EQ(two.exit, 2) << two.err;
  const Outcome nsys = moegate("profile --suite tiny --filter '^topk_sort/' --under nsys");
  EXPECT_EQ(nsys.exit, 0) << nsys.err;
  EXPECT_TRUE(nsys.out.starts_with("nsys profile ")) << nsys.out;
  EXPECT_NE(nsys.out.find("--filter '^topk_sort/'"), std::string::npos) << nsys.out;
}

TEST_F(RunTest, ProfileLaunchesAndStoresNothing) {
  const Outcome outcome = moegate(run("--profile"));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results.sqlite"));
}

}  // namespace
}  // namespace moegate::test
