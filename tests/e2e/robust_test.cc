// SPDX-License-Identifier: Apache-2.0
// Runs that are killed, interrupted, resumed twice, or have nowhere to write to.
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

constexpr const char* kQuick =
    "--device host --min-samples 10 --max-samples 20 --budget 50ms --rounds ";
constexpr const char* kForEver = "1000";

class RobustTest : public ProgramTest {
 protected:
  RobustTest() {
    write("quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[a]\ntokens = 3, 20\n");
  }
  std::string run(const std::string& rounds = "1", const std::string& more = "") const {
    return "run --suite ./quick.suite " + (kQuick + rounds) + " " + more;
  }
  int count(const std::string& sql) const { return number("results.sqlite", sql); }
  int rows() const { return count("SELECT count(*) FROM result"); }
  void refused(const std::string& arguments, const std::string& says, int exit = 2) const {
    const Outcome outcome = moegate(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << arguments << "\n" << outcome.err;
  }
  /// Runs `command` in a process group of its own and sends the group a signal once `ready`.
  Outcome signalled(const std::string& command, int signal,
                    const std::function<bool()>& ready) const {
    Outcome outcome;
    std::thread running(
        [&] { outcome = shell("setsid sh -c 'echo $$ >pid; exec \"$@\"' sh " + command); });
    while (!ready()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kill(-std::stoi(read("pid")), signal);
    running.join();
    return outcome;
  }
  Outcome signalled_run(int signal) const {
    const int before = rows();
    return signalled(program() + " " + run(kForEver), signal, [&] { return rows() > before; });
  }
  /// Lets a run of for ever end after one more round.
  void shorten() const {
    Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE)
        .execute(
            "UPDATE run SET options = json_set(options, '$.rounds', (SELECT max(round) + 1 "
            "FROM process)) WHERE status <> 'complete'");
  }
};

TEST_F(RobustTest, StandardErrorThatCannotBeWrittenLosesNothing) {
  EXPECT_EQ(shell(program() + " " + run() + " 2>/dev/full").exit, 0);
  EXPECT_EQ(rows(), 4);
  EXPECT_EQ(shell(program() + " " + run() + " 2>&-").exit, 0);
  EXPECT_EQ(rows(), 8);
  EXPECT_EQ(query("results.sqlite", "PRAGMA integrity_check"), "ok");
}

TEST_F(RobustTest, AResultThatCannotBePrintedIsNoSuccess) {
  for (const char* command : {" --version", " list kernels", " run --help"}) {
    const Outcome full = shell(program() + command + " >/dev/full");
    EXPECT_EQ(full.exit, 2) << command << full.err;
    EXPECT_NE(full.err.find("standard output cannot be written"), std::string::npos) << full.err;
    EXPECT_EQ(shell(program() + command + " >&-").exit, 2) << command;
  }
}

TEST_F(RobustTest, AStoreIsAFile) {
  refused(run("1", "--db ''"), "--db '' names no file");
  refused(run("1", "--db :memory:"), "--db ':memory:' names no file");
  EXPECT_EQ(moegate(run("1", "--db 'file:x?mode=memory'")).exit, 0);
  EXPECT_EQ(query("./file:x?mode=memory", "SELECT count(*) FROM result"), "4");
}

TEST_F(RobustTest, ResumeTakesTheNewestRunThatIsNotComplete) {
  ASSERT_EQ(moegate(run()).exit, 0);
  refused("run --resume latest", "every run of ");
  refused("run --resume 1", "run 1 is complete");
  ASSERT_EQ(signalled_run(SIGKILL).exit, 137);
  EXPECT_EQ(query("results.sqlite", "SELECT status FROM run WHERE run_id = 2"), "running");
  ASSERT_EQ(moegate(run()).exit, 0);
  refused("run --resume 2 --rounds 7", "--rounds is given beside --resume");
  shorten();
  const Outcome resumed = moegate("run --resume latest");
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(query("results.sqlite", "SELECT group_concat(status) FROM run"),
            "complete,complete,complete");
}

TEST_F(RobustTest, ARunHasOneWriter) {
  const auto resumed_meanwhile = [&] {
    if (rows() == 0) return false;
    refused("run --resume 1", "run 1 is being measured by another process");
    return true;
  };
  const Outcome killed = signalled(program() + " " + run(kForEver), SIGKILL, resumed_meanwhile);
  ASSERT_EQ(killed.exit, 137);
  shorten();
  EXPECT_EQ(moegate("run --resume 1").exit, 0) << "its writer is dead";
  EXPECT_EQ(query("results.sqlite",
                  "SELECT count(*) FROM (SELECT 1 FROM result JOIN process USING (process_id) "
                  "GROUP BY round, case_id, variant HAVING count(*) > 1)"),
            "0");
}

TEST_F(RobustTest, ASignalToAllIsNoCrash) {
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
    const Outcome outcome = signalled_run(signal);
    EXPECT_EQ(outcome.exit, 130) << signal << outcome.err;
    EXPECT_NE(outcome.out.find("--resume"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("--db results.sqlite` finishes it"), std::string::npos)
        << outcome.out;
  }
  EXPECT_EQ(query("results.sqlite", "SELECT group_concat(DISTINCT status) FROM run"),
            "interrupted");
  EXPECT_EQ(count("SELECT count(*) FROM result WHERE status = 'crashed'"), 0);
}

TEST_F(RobustTest, TheRowAtHandIsGivenUp) {
  // On its first row, which would be a time-out.
  const std::string command = "env MOEGATE_SABOTEUR=hang " + saboteurs() + " ";
  const auto begun = [&] { return count("SELECT count(*) FROM process") > 0; };
  const Outcome interrupted =
      signalled(command + run("1", "--variant saboteur --case-timeout 30s"), SIGINT, begun);
  EXPECT_EQ(interrupted.exit, 130) << interrupted.err;
  EXPECT_EQ(rows(), 0);
  std::filesystem::remove(folder_ / "results.sqlite");
  const Outcome ab = signalled(command +
                                   "ab --base variant=saboteur --head variant=chain --suite "
                                   "./quick.suite --case-timeout 30s "
                                   "--device host --db results.sqlite",
                               SIGINT, begun);
  EXPECT_EQ(ab.exit, 130) << ab.err;
  EXPECT_NE(ab.err.find("nothing is judged"), std::string::npos) << ab.err;
}

/// An A/B that a signal ends in its third round. Noise decides nothing of a wrong output.
class CutAbTest : public RobustTest {
 protected:
  CutAbTest() { moegate(run()); }  // the store is there, so that no ceilings are measured
  Outcome cut_by(int signal) const {
    const std::string command = program() + " ab --base program=" + sabotaged("none") +
                                " --head program=" + sabotaged("scale") +
                                " --measure-identical --suite ./quick.suite --device host "
                                "--db results.sqlite --out v.json --min-samples 10 "
                                "--max-samples 20 --budget 50ms --rounds 1000,2,0";
    const std::string third = "SELECT count(*) FROM process WHERE round = 2";
    const int before = count(third);
    return signalled(command, signal, [&] { return count(third) > before; });
  }
};

TEST_F(CutAbTest, WhatHasItsPairsIsJudgedAndTheRestNamed) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Outcome outcome = cut_by(signal);
    EXPECT_EQ(outcome.exit, 130) << outcome.err;
    EXPECT_TRUE(says(outcome, "INTERRUPTED (exit 130): 2 wrong, "));
    EXPECT_TRUE(says(outcome, " not judged"));
    EXPECT_TRUE(says(outcome, "not judged: interrupted before all of its pairs were measured"));
    EXPECT_NE(read("v.json").find("\"exit\": 130"), std::string::npos);
    EXPECT_EQ(query("results.sqlite",
                    "SELECT group_concat(n || ' ' || outcome, ', ') FROM (SELECT count(*) AS n, "
                    "outcome FROM verdict WHERE run_id = (SELECT max(run_id) FROM run) GROUP BY "
                    "outcome ORDER BY outcome)"),
              "4 inconclusive, 2 wrong");
  }
}

TEST_F(CutAbTest, WhatAKilledOneStoredIsJudgedByTheGateAndNeverPasses) {
  ASSERT_EQ(cut_by(SIGKILL).exit, 137);
  refused("run --resume 3", "judge what there is: `moegate gate --against BASE --run HEAD`");
  const Outcome outcome = moegate("gate --against 2 --run 3");
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_TRUE(says(outcome, "INTERRUPTED (exit 130): "));
  EXPECT_TRUE(says(outcome, "2 wrong, "));
}

TEST_F(RobustTest, OutputsAreCheckedFirstAndWrittenOneByOne) {
  refused(run("1", "--out no/such/x.json"), "no/such/x.json: cannot be written");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results.sqlite"));
  ASSERT_EQ(moegate(run()).exit, 0);
  shell("mkdir folder.md; ln -s /dev/full full.md");
  refused("gate --out folder.md", "folder.md: is a folder");
  refused("gate --out no/such/j.xml --out v.json", "no/such/j.xml: cannot be written");
  refused("gate --out full.md --out v.json", "full.md");
  refused("gate --out report.txt", "the ending says what is written");
  refused("gate --out a.md --out b.md", "both are .md files");
  EXPECT_NE(read("v.json").find("\"exit\""), std::string::npos);
}

TEST_F(RobustTest, WhatWouldBeIgnoredIsRefused) {
  refused(run("1", "--tag a=1 --tag a=2"), "--tag a is given twice");
  refused(run("1", "--label \"$(printf 'a\\nb')\""), "--label 'a b' has control characters");
  refused("ab --base variant=chain --head variant=fused --variant x --suite ./quick.suite",
          "leave it out");
  refused("gate --replay-program ./none", "--replay-program ./none: this is not a program");
}

TEST_F(RobustTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(moegate(run()).exit, 0);
  shell("mkdir folder; mkfifo pipe.sql");
  refused("list waivers --waivers folder", "folder: this is not a regular file");
  refused("gate --waivers folder", "folder: this is not a regular file");
  refused("list waivers --waivers /dev/zero", "/dev/zero: this is not a regular file");
  refused("report ./pipe.sql", "pipe.sql");
  refused("list runs --db /dev/zero", "not a regular file", 30);
}

TEST_F(RobustTest, AReproIsACommandWhateverTheStoreSays) {
  write("a;touch owned;b.suite", read("quick.suite"));
  ASSERT_EQ(moegate("run --suite \"./a;touch owned;b.suite\" " + (kQuick + std::string("1"))).exit,
            0);
  const std::string line =
      "\"$(" + program() + " run --like 1 --dry-run | tail -n 1 | sed 's/^moegate/true/')\"";
  EXPECT_EQ(shell("sh -c " + line).exit, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "owned"));
}

TEST_F(RobustTest, MessagesBlameWhoIsToBlame) {
  refused(run("1", "--axis tokens=abc"), "'abc' is not an integer in");
  refused(run("1", "--axis tokens=abc"), "; the value comes from --axis tokens");
  refused(run("1", "--seed -5"), "; the value comes from --seed or --axis seed");
  write("odd.suite", "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[a]\ntokens = odd\n");
  refused("verify --device host --suite ./odd.suite", "moegate: odd.suite [a]: tokens = 'odd'");
}

// A build takes the file's place by another; the artifact is the program that measured.
TEST_F(RobustTest, AProgramThatIsReplacedWhileItRunsIsKept) {
  shell("mkdir bin; cp " + program() + " bin/moegate");
  const Outcome outcome =
      shell("bin/moegate " + run() +
            " --keep-artifact & until [ -e results.sqlite ] || ! kill -0 $!; do sleep 0.01; done; "
            "rm bin/moegate; wait $!");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const Outcome same = shell("cmp " + program() + " artifacts/*/bin/moegate");
  EXPECT_EQ(same.exit, 0) << same.err << outcome.out << outcome.err;
}

TEST_F(RobustTest, OneNightAtATime) {
  shell("mkdir out");
  const Outcome beside =
      shell("flock out/.lock -c '" + program() + " nightly --device host --out out'");
  EXPECT_EQ(beside.exit, 21) << beside.err;
  EXPECT_NE(beside.err.find("another night or A/B is running"), std::string::npos) << beside.err;
}

}  // namespace
}  // namespace moegate::test
