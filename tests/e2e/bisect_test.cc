// SPDX-License-Identifier: Apache-2.0
// moegate bisect end to end in a scratch repository, with a stand-in for ci/ab: every commit holds
// the exit code that an A/B of it would have.

#include "harness/base/test_fixture.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class BisectTest : public ProgramTest {
 protected:
  /// A repository with the commits c1, c2, … and a script that exits by them.
  void make_repository(const std::vector<std::string>& codes) const {
    std::string commands =
        "git init -q -b work repo && cd repo && git config user.name a && "
        "git config user.email a@b && mkdir ci && cp ../fake_ab ci/ab && chmod +x ci/ab && echo "
        "/.cache/ >.gitignore";
    for (size_t i = 0; i < codes.size(); ++i) {
      const std::string name = "c" + std::to_string(i + 1);
      commands += " && echo '" + codes[i] + "' >code && echo " + name + " >name && git add -A && " +
                  "git commit -q -m 'Commit " + name + "' && git tag " + name;
    }
    // Something of the user's that is not committed.
    const Outcome made = shell(commands + " && echo mine >>name");
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  Outcome bisect(const std::string& arguments) const {
    return shell("cd repo && " + program() + " bisect " + arguments);
  }
  static constexpr const char* kCase = "--filter 'tokens=8(,|$)' --variant fused ";

  const ScopedVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};

  BisectTest() {
    write("fake_ab", R"sh(#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$@" >>"$root/../arguments"
env | grep -E '^GIT_(DIR|WORK_TREE|INDEX_FILE)=' >>"$root/../environment"
cd "$root"
code=$(git show "$2:code")
echo "comparing $(git show "$2:name")"
if [ "$code" = wait ]; then
  echo $$ >../waiting
  sleep 600 &
  wait
fi
exit "$code"
)sh");
  }
  /// Nothing of the bisection is left, and what the user had is as it was.
  void expect_clean() const {
    const Outcome state = shell(
        "cd repo && git worktree list | wc -l && git for-each-ref refs/bisect && ls -A "
        "../cache/moegate/* "
        "2>/dev/null; ls .git | grep BISECT; ls -A .git/worktrees 2>/dev/null; "
        "git symbolic-ref --short HEAD && git status --porcelain && tail -1 name");
    EXPECT_EQ(state.out, "1\nwork\n M name\nmine\n") << state.err;
  }
};

TEST_F(BisectTest, FindsTheCommit) {
  make_repository({"0", "0", "0", "0", "0", "10", "12", "10", "11"});
  const Outcome found = bisect(std::string(kCase) + "--base c1 --suite s --rounds 4 --device host");
  EXPECT_EQ(found.exit, 0) << found.err;
  const std::string hash = shell("git -C repo rev-parse c6").out.substr(0, 40);
  EXPECT_EQ(found.out.rfind("first bad commit: " + hash + " Commit c6\na, ", 0), 0u) << found.out;
  EXPECT_NE(found.out.find("git bisect start"), std::string::npos) << found.out;
  EXPECT_NE(found.err.find("comparing c6"), std::string::npos) << "progress\n" << found.err;
  expect_clean();
  // The good commit against the bad one first, then against those between.
  const std::string good = shell("git -C repo rev-parse c1").out.substr(0, 40);
  const std::string bad = shell("git -C repo rev-parse c9").out.substr(0, 40);
  EXPECT_EQ(
      read("arguments")
          .rfind(good + " " + bad +
                     " --filter tokens=8(,|$) --variant ^fused$ --suite s --device host "
                     "--rounds 4 --fail-on latency,accuracy,coverage,environment,inconclusive\n" +
                     good + " ",
                 0),
      0u)
      << read("arguments");
  EXPECT_EQ(shell("wc -l <arguments").out, "4\n") << "log2(8) steps after the first";
  EXPECT_NE(read("arguments").find("--fail-on accuracy,coverage\n"), std::string::npos)
      << "the newest has a wrong output: noise of its time does not matter\n"
      << read("arguments");
  EXPECT_EQ(read("environment"), "") << "the builds of an A/B are in other worktrees";
}

TEST_F(BisectTest, AsksAtTheEndWhyTheCommitIsSlower) {
  write("fake_ab", R"sh(#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
echo "$MOEGATE_WHY $(git show "$1:name") $(git show "$2:name")" >>"$root/../asked"
code=$(git show "$2:code")
while [ $# -gt 0 ]; do
  [ "$1" = --out ] && echo '{"cases": [{"key": "op/tokens=8", "variant": "fused",
    "cause": {"sentence": "DRAM bytes read +12 %"}}]}' >"$2"
  shift
done
exit "$code"
)sh");
  make_repository({"0", "0", "10", "10"});
  const Outcome found = bisect(std::string(kCase) + "--base c1 --device host --why all");
  EXPECT_EQ(found.exit, 0) << found.err;
  EXPECT_NE(found.out.find("\nwhy:\nop/tokens=8 fused: DRAM bytes read +12 %\n"), std::string::npos)
      << found.out;
  const std::string asked = read("asked");
  EXPECT_EQ(asked.rfind("off c1 c4\noff c1 ", 0), 0u) << asked;
  EXPECT_NE(asked.find("\nall c2 c3\n"), std::string::npos) << "the commit and its parent\n"
                                                            << asked;
  EXPECT_EQ(asked.find("all"), asked.rfind("all")) << "and none before\n" << asked;
  expect_clean();
}

TEST_F(BisectTest, InsideAHookItBisectsInItsOwnWorktreeToo) {
  make_repository({"0", "0", "10"});
  const Outcome found =
      shell("cd repo && GIT_DIR=$PWD/.git " + program() + " bisect " + kCase + "--base c1");
  EXPECT_EQ(found.exit, 0) << found.err;
  expect_clean();
}

TEST_F(BisectTest, CommitsThatCannotBeTestedAreSkipped) {
  make_repository({"0", "0", "10", "10", "13", "10", "1", "20", "10"});
  const Outcome found = bisect(std::string(kCase) + "--base c1 --head c9");
  EXPECT_EQ(found.exit, 0) << found.err;
  EXPECT_NE(found.out.find(" Commit c3\n"), std::string::npos) << found.out;
  expect_clean();
}

TEST_F(BisectTest, WhatOnlySkippedCommitsSeparateIsInconclusive) {
  make_repository({"0", "0", "20", "20", "10", "10"});
  const Outcome found = bisect(std::string(kCase) + "--base c1");
  EXPECT_EQ(found.exit, 20) << found.err;
  for (const char* commit : {"c3", "c4", "c5"}) {
    const std::string hash =
        shell(std::string("git -C repo rev-parse ") + commit).out.substr(0, 12);
    EXPECT_NE(found.err.find(hash), std::string::npos) << commit << "\n" << found.err;
  }
  expect_clean();
}

TEST_F(BisectTest, AFatalStepEndsIt) {
  make_repository({"0", "0", "30", "0", "10"});
  const Outcome ended = bisect(std::string(kCase) + "--base c1");
  EXPECT_EQ(ended.exit, 2) << ended.err;
  EXPECT_NE(ended.err.find("gave up on a commit"), std::string::npos) << ended.err;
  expect_clean();
}

TEST_F(BisectTest, NothingToFindIsSaidBeforeTheFirstStep) {
  make_repository({"0", "0", "0"});
  const Outcome same = bisect(std::string(kCase) + "--base c1");
  EXPECT_EQ(same.exit, 2) << same.err;
  EXPECT_NE(same.err.find("--head 'HEAD' is no worse than --base 'c1'"), std::string::npos)
      << same.err;
  expect_clean();
  const Outcome made = shell(
      "cd repo && git checkout -q -- name && echo 21 >code && git commit -q -a -m x && "
      "echo mine >>name");
  ASSERT_EQ(made.exit, 0) << made.err;
  const Outcome unclear = bisect(std::string(kCase) + "--base c1");
  EXPECT_EQ(unclear.exit, 20) << unclear.err;
  expect_clean();
}

TEST_F(BisectTest, AnInterruptLeavesNothingBehind) {
  make_repository({"0", "0", "wait", "0", "10"});
  const Outcome ended = shell("cd repo && { " + program() + " bisect " + kCase +
                              "--base c1 & } && pid=$! && "
                              "while [ ! -s ../waiting ]; do sleep 0.05; done; "
                              "kill -TERM $pid; wait $pid");
  EXPECT_EQ(ended.exit, 130) << ended.err;
  expect_clean();
  // Its A/B ends too; a hung one lets the test run into its time limit.
  shell("while kill -0 $(cat waiting) 2>/dev/null; do sleep 0.05; done");
}

TEST_F(BisectTest, BadInput) {
  make_repository({"0", "10", "0"});
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = bisect(arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  };
  const std::string kind = kCase;
  refused("--filter 8 --variant v", "--base is missing");
  refused("--filter 8 --base c1", "--variant is missing");
  refused("--variant v --base c1", "--filter is missing");
  refused("--filter '(' --variant v --base c1", "--filter '(' is not a regular expression");
  refused(kind + "--base nothing", "--base 'nothing' is not a commit of ");
  refused(kind + "--base c1 --head -x", "--head");
  refused(kind + "--base c1 --head c1", "give two commits");
  refused(kind + "--base c3 --head c1", "--base 'c3' is not an ancestor of --head 'c1'");
  refused(kind + "--base c1 --rounds 1", "--rounds 1 is too few");
  refused(kind + "--base c1 --script ./none", "none: there is no program");
  EXPECT_EQ(read("arguments"), "") << "nothing was measured";
  expect_clean();
  const Outcome outside = moegate("bisect " + kind + "--base c1");
  EXPECT_EQ(outside.exit, 2);
  EXPECT_NE(outside.err.find("is not in a git repository"), std::string::npos) << outside.err;
}

TEST_F(BisectTest, ASuiteGivenByPathIsTheUsers) {
  make_repository({"0", "10"});
  EXPECT_EQ(bisect(std::string(kCase) + "--base c1 --suite ./own.suite").exit, 0);
  EXPECT_NE(read("arguments").find(" --suite " + (folder_ / "repo").string() + "/./own.suite"),
            std::string::npos)
      << read("arguments");
}

TEST_F(BisectTest, AnotherScriptCanBeGiven) {
  make_repository({"0", "10", "10"});
  write("other_ab",
        "#!/bin/sh\necho other >>../called\n[ $(git -C \"$(dirname \"$0\")/repo\" show "
        "$2:code) = 0 ] || exit 10\n");
  shell("chmod +x other_ab");
  const Outcome found = bisect(std::string(kCase) + "--base c1 --script ../other_ab");
  EXPECT_EQ(found.exit, 0) << found.err;
  EXPECT_NE(found.out.find(" Commit c2\n"), std::string::npos) << found.out;
  EXPECT_EQ(read("arguments"), "") << "not ci/ab";
}

}  // namespace
}  // namespace moegate::test
