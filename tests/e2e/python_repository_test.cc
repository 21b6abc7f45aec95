// SPDX-License-Identifier: Apache-2.0
// Kernels in Python that differ between two sides: two files, or commits of the repository that
// they live in.
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

class PythonRepositoryTest : public PythonTest {
 protected:
  const ScopedVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};

  /// Commits c0, c1, … of bench/kernels.py in folder engine.
  void make_repository(const std::vector<std::string>& factors) const {
    std::string commands =
        "git init -q -b work engine && cd engine && git config user.name a && git config "
        "user.email a@b && mkdir bench";
    for (size_t i = 0; i < factors.size(); ++i) {
      const std::string file = "kernels" + std::to_string(i) + ".py";
      write_scaled(file, factors[i]);
      commands += " && cp ../" + file + " bench/kernels.py && echo " + std::to_string(i) +
                  " >number && git add -A && git commit -q -m 'Commit " + std::to_string(i) +
                  "' && git tag c" + std::to_string(i);
    }
    const Outcome made = shell(commands);
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  /// A commit's hash; short_of() is what messages show of it.
  std::string commit_of(const std::string& tag) const {
    return shell("git -C engine rev-parse " + tag).out.substr(0, 40);
  }
  std::string short_of(const std::string& tag) const { return commit_of(tag).substr(0, 12); }
  Outcome bisect(const std::string& bad) const {
    return moegate(
        "bisect --repo engine --module bench/kernels.py --filter doubled --variant other --suite "
        "./doubled.suite --rounds 2 --device host --base c0 --head " +
        bad);
  }
};

TEST_F(PythonRepositoryTest, EachSideHasItsFile) {
  write_scaled("off.py", "1.5");
  const std::string sides = "ab --base module=operator.py --head module=off.py --rounds 2 ";
  const Outcome wrong = moegate(sides + kDoubled + kQuick);
  EXPECT_EQ(wrong.exit, 11) << wrong.out << wrong.err;
  const Outcome same = moegate(
      std::string("ab --base module=operator.py --head module=operator.py ") + kDoubled + kQuick);
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("1 identical"), std::string::npos) << same.out;
}

TEST_F(PythonRepositoryTest, CommitsOfTheirRepositoryAreCompared) {
  make_repository({"1", "1", "1.5"});
  const std::string common = std::string("--module bench/kernels.py ") + kDoubled + "--rounds 2 ";
  const Outcome wrong = moegate("ab --repo engine c0 c2 --build 'touch built' " + common + kQuick);
  EXPECT_EQ(wrong.exit, 11) << wrong.out << wrong.err;
  const std::string commit = commit_of("c2");
  EXPECT_NE(wrong.out.find("engine " + commit), std::string::npos) << wrong.out;
  EXPECT_EQ(shell("ls cache/moegate/*/" + commit + "/built").exit, 0);

  // The working tree: what is not committed counts, and is left as it is.
  shell("sed -i 's/FACTOR = 1.5/FACTOR = 1/' engine/bench/kernels.py");
  const Outcome same = moegate("ab --repo engine --base c1 " + common + kQuick);
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("1 identical"), std::string::npos) << same.out;
  EXPECT_EQ(shell("git -C engine status --porcelain").out, " M bench/kernels.py\n");

  const Outcome found = bisect("c2");
  EXPECT_EQ(found.exit, 0) << found.err;
  EXPECT_NE(found.out.find("first bad commit: " + commit), std::string::npos) << found.out;
}

TEST_F(PythonRepositoryTest, ARunSaysWhichCommitItsKernelsAreOf) {
  make_repository({"1"});
  const std::string run = std::string("run --module engine/bench/kernels.py ") + kDoubled + kQuick;
  ASSERT_EQ(moegate(run).exit, 0);
  const std::string commit = commit_of("c0");
  const std::string tag = "SELECT value FROM tag WHERE name = 'commit' AND run_id = ";
  EXPECT_EQ(query("results.sqlite", tag + "1"), commit);
  shell("echo '# more' >>engine/bench/kernels.py");
  ASSERT_EQ(moegate(run).exit, 0);
  EXPECT_EQ(query("results.sqlite", tag + "2"), commit + "-dirty");
}

TEST_F(PythonRepositoryTest, WhatRunsLeaveInARepositoryIsNoChangeOfIt) {
  make_repository({"1"});
  const ScopedVariable compiled{"PYTHONDONTWRITEBYTECODE", ""};
  shell("cp doubled.suite engine/bench/ && cd engine && git add -A && git commit -q -m Suite");
  shell(
      "echo 'def nothing(): pass' >engine/bench/helper.py && "
      "sed -i '1i import helper' engine/bench/kernels.py && cd engine && git add -A && "
      "git commit -q -m Helper");
  const std::string commit = shell("git -C engine rev-parse HEAD").out.substr(0, 40);
  const auto run = [&] {
    return shell("cd engine && " + program() +
                 " run --module bench/kernels.py --suite ./bench/doubled.suite --variant other "
                 "--device host "
                 "--min-samples 10 --max-samples 20 --budget 50ms --rounds 1");
  };
  for (const char* number : {"1", "2"}) {
    const Outcome outcome = run();
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(
        query("engine/results.sqlite",
              "SELECT value FROM tag WHERE name = 'commit' AND run_id = " + std::string(number)),
        commit);
  }
  EXPECT_EQ(shell("find engine -name __pycache__").out, "");
  // Its own files are ignored where nobody tracks them; another file is a change.
  shell(
      "mkdir -p engine/out engine/bench/__pycache__ && touch engine/out/report.md "
      "engine/bench/__pycache__/helper.pyc engine/mine.sqlite engine/mine.sqlite.lock");
  const std::string sides = "ab --repo engine --base HEAD --module bench/kernels.py ";
  const Outcome same = moegate(sides + kDoubled + kQuick);
  EXPECT_EQ(same.exit, 0) << same.err << same.out;
  EXPECT_EQ(shell("ls -d cache/moegate/*/*.whole | wc -l").out, "1\n");
  shell("echo 1 >engine/new.json");
  ASSERT_EQ(run().exit, 0);
  EXPECT_EQ(
      query("engine/results.sqlite", "SELECT value FROM tag WHERE name = 'commit' AND run_id = 3"),
      commit + "-dirty");
}

TEST_F(PythonRepositoryTest, WhatIsMissingToCompareCommitsIsNamed) {
  make_repository({"1"});
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = moegate("ab --suite ./doubled.suite " + arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  refused("--repo engine c0", "give --module FILE");
  refused("--repo engine --module bench/kernels.py", "give --base REF");
  refused("--repo engine c9 --module bench/kernels.py", "'c9' is not a commit of");
  refused("--repo cache c0 --module bench/kernels.py", "is not in a git repository");
  refused("--repo engine c0 --module operator.py", "is not in --repo");
  refused("c0", "give --repo DIR");
  const std::string commit = short_of("c0");
  refused("--repo engine c0 --module bench/none.so",
          "--module bench/none.so: --base 'c0' (" + commit +
              ") has no such file; give another file, or --build CMD if the build makes it");
  refused(
      "--repo engine c0 --module bench/none.so --build 'touch built'",
      "has no such file after --build 'touch built'; give the path to which the build writes it");
}

TEST_F(PythonRepositoryTest, ACommitWithoutTheKernelsIsSkipped) {
  make_repository({"1", "1.5"});
  const Outcome between = shell(
      "cd engine && git checkout -q -b gap c0 && git mv bench elsewhere && git commit -q -m Moved "
      "&& git tag moved && git mv elsewhere bench && "
      "git checkout -q c1 -- bench && git commit -q -m Back && git tag back");
  ASSERT_EQ(between.exit, 0) << between.err;
  const std::string commit = short_of("moved");
  const Outcome ab =
      moegate("ab --suite ./doubled.suite --repo engine c0 moved --module bench/kernels.py");
  EXPECT_EQ(ab.exit, 21) << ab.err;
  EXPECT_NE(ab.err.find("--head 'moved' (" + commit + ") has no such file, which the base has"),
            std::string::npos)
      << ab.err;
  const Outcome found = bisect("back");
  EXPECT_EQ(found.exit, 20) << found.out << found.err;
  EXPECT_NE((found.out + found.err).find(commit), std::string::npos) << found.out << found.err;
}

TEST_F(PythonRepositoryTest, ACommitThatDoesNotBuildIsNoFaultOfTheProgram) {
  make_repository({"1"});
  const std::string commit = short_of("c0");
  const Outcome broken = moegate(
      "ab --suite ./doubled.suite --repo engine c0 --module bench/kernels.py --build 'echo no; "
      "exit 3'");
  EXPECT_EQ(broken.exit, 21) << broken.err;
  EXPECT_NE(
      broken.err.find("no\nmoegate: --base 'c0' (" + commit +
                      ") does not build: --build 'echo no; exit 3' exits with 3; its output is "
                      "in " +
                      (folder_ / "cache").string()),
      std::string::npos)
      << broken.err;
  EXPECT_EQ(shell("cat cache/moegate/*/" + commit + "*.log").out, "no\n");
}

}  // namespace
}  // namespace moegate::test
