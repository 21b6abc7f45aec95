// SPDX-License-Identifier: Apache-2.0
// Two commits of a repository share nothing but the machine, and ask the same question; or the
// verdict says what they share, or ask otherwise.
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

class SidesTest : public PythonTest {
 protected:
  SidesTest() {
    std::filesystem::create_directory(folder_ / "home");
    const Outcome made = shell(
        "git init -q -b work engine && cd engine && git config user.name a && git config "
        "user.email a@b && git config protocol.file.allow always && mkdir bench");
    EXPECT_EQ(made.exit, 0) << made.err;
  }

  /// The operator as `bench/kernels.py`, with something of it replaced.
  void write_kernels(const std::string& what = "", const std::string& by = "") const {
    write_scaled("kernels.py", "1");
    std::string text = read("kernels.py");
    if (!what.empty()) {
      const size_t at = text.find(what);
      ASSERT_NE(at, std::string::npos) << what;
      text.replace(at, what.size(), by);
    }
    write("engine/bench/kernels.py", text);
  }
  void commit(const std::string& tag) const {
    const Outcome made =
        shell("cd engine && git add -A && git commit -q -m " + tag + " && git tag " + tag);
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  std::string commit_of(const std::string& tag) const {
    return shell("git -C engine rev-parse " + tag).out.substr(0, 40);
  }
  /// The A/B of two commits, or with an empty head of one and the working tree.
  Outcome ab(const std::string& commits,
             const std::string& more = "--suite ./doubled.suite") const {
    return moegate("ab --repo engine --module bench/kernels.py --variant other --rounds 4,2,0 " +
                   more + " " + commits + kQuick);
  }

  const ScopedVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};
  const ScopedVariable home_{"HOME", folder_ / "home"};
};

TEST_F(SidesTest, ATruthThatFollowsTheKernelIsNoImprovement) {
  write_kernels();
  commit("c0");
  write_kernels("{\"out\": case.factor * x + inputs[\"bias\"]",
                "{\"out\": 1.5 * (case.factor * x + inputs[\"bias\"])");
  shell("sed -i 's/FACTOR = 1/FACTOR = 1.5/' engine/bench/kernels.py");
  commit("c1");
  const Outcome outcome = ab("c0 c1");
  EXPECT_EQ(outcome.exit, 21);
  EXPECT_TRUE(says(outcome, "operator doubled has other truth than the base's: 1 row is not"));
}

TEST_F(SidesTest, AnOperatorThatAsksForLessIsNoImprovement) {
  write_kernels();
  commit("c0");
  write_kernels("Input(\"x\", \"fp32\", (case.tokens, 64)",
                "Input(\"x\", \"fp32\", (case.tokens, 16)");
  shell(
      "sed -i 's/(case.tokens, 64)/(case.tokens, 16)/; s/(64,)/(16,)/; s/random(64)/random(16)/' "
      "engine/bench/kernels.py");
  commit("c1");
  const Outcome outcome = ab("c0 c1");
  EXPECT_EQ(outcome.exit, 21);
  EXPECT_TRUE(says(outcome, "operator doubled has other tensors than the base's"));
}

TEST_F(SidesTest, AToleranceThatTheHeadWidenedIsNamed) {
  write_kernels();
  commit("c0");
  write_kernels("rtol=1e-6", "rtol=1e-3");
  commit("c1");
  const Outcome outcome = ab("c0 c1");
  EXPECT_EQ(outcome.exit, 21);
  EXPECT_TRUE(says(outcome, "operator doubled has other tolerances than the base's"));
}

TEST_F(SidesTest, ACaseThatTheHeadsSuiteLostIsMissing) {
  write_kernels();
  write("engine/own.suite", "op = doubled\n[d]\ntokens = 4, 8\n");
  commit("c0");
  write("engine/own.suite", "op = doubled\n[d]\ntokens = 4\n");
  commit("c1");
  const Outcome outcome = ab("c0 c1", "--suite engine/own.suite");
  EXPECT_EQ(outcome.exit, 13);
  EXPECT_TRUE(says(outcome, "1 rows of the base's suites are missing in the head's"));
  EXPECT_TRUE(says(outcome, "suite file own.suite was edited"));
  EXPECT_TRUE(says(outcome, "doubled/tokens=8"));
  // Read from the commit, not from what lies in the working tree.
  write("engine/own.suite", "no suite");
  EXPECT_EQ(ab("c1 c1", "--suite engine/own.suite").exit, 0);
  shell("cd engine && git checkout -q -f && git rm -q own.suite");
  commit("c2");
  const Outcome lost = ab("c1 c2", "--suite engine/own.suite");
  EXPECT_EQ(lost.exit, 13);
  EXPECT_TRUE(says(lost, "has no such file, and the base has it"));
}

TEST_F(SidesTest, AChangeInASubmoduleThatNoCommitHoldsIsRefused) {
  write_kernels();
  ASSERT_EQ(shell("git init -q -b work part && cd part && git config user.name a && git config "
                  "user.email a@b && echo 1 >'a file' && git add -A && git commit -q -m Part")
                .exit,
            0);
  const Outcome added = shell(
      "cd engine && git -c protocol.file.allow=always submodule --quiet add ../part 'a part'");
  ASSERT_EQ(added.exit, 0) << added.err;
  commit("c0");
  shell("echo 2 >'engine/a part/a file'");
  const Outcome outcome = ab("c0");
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_TRUE(says(outcome, "submodule a part has uncommitted changes"));
  EXPECT_EQ(ab("c0 --head HEAD").exit, 0);
}

TEST_F(SidesTest, ABuildThatEditsTheOtherSideIsUndone) {
  write_kernels();
  write("engine/build.sh", "true\n");
  commit("c0");
  write_kernels("FACTOR = 1", "FACTOR = 1.5");
  write("engine/build.sh", "for d in ../*/bench; do cp bench/kernels.py $d/ || true; done\n");
  commit("c1");
  const auto untouched = [&] {
    return shell("git -C engine show c0:bench/kernels.py | cmp - cache/moegate/*/" +
                 commit_of("c0") + "/bench/kernels.py")
        .exit;
  };
  const Outcome outcome = ab("c0 c1 --build 'sh build.sh'");
  EXPECT_EQ(outcome.exit, 11);
  EXPECT_TRUE(
      says(outcome, "bench/kernels.py changed after the build; the checkout is made again"));
  EXPECT_EQ(untouched(), 0);
  // Nor does a later A/B get what the build of another one left.
  shell("cp engine/bench/kernels.py cache/moegate/*/" + commit_of("c0") + "/bench/");
  EXPECT_EQ(ab("c0 c0 --build 'sh build.sh'").exit, 0);
  EXPECT_EQ(untouched(), 0);
}

TEST_F(SidesTest, BuildsThatEditEachOtherAreRefused) {
  write_kernels();
  write("engine/build.sh", "for d in ../*/bench; do git rev-parse HEAD >$d/version; done\n");
  commit("c0");
  write("engine/more", "");
  commit("c1");
  const Outcome outcome = ab("c0 c1 --build 'sh build.sh'");
  EXPECT_EQ(outcome.exit, 21);
  EXPECT_TRUE(says(outcome, "changes bench/version there, too"));
}

TEST_F(SidesTest, EachSideTunesForItself) {
  // What the first one to be started finds out, the next one believes.
  const std::string tuned =
      "import os\n"
      "kept = os.path.expanduser(PLACE)\n"
      "os.makedirs(os.path.dirname(kept), exist_ok=True)\n"
      "if not os.path.exists(kept):\n"
      "    open(kept, 'w').write(str(FACTOR))\n"
      "FACTOR = float(open(kept).read())\n";
  for (const std::string place :
       {"'~/.cache/engine/tuned'", "os.environ.get('TMPDIR', '/tmp/none') + '/engine/tuned'",
        "os.environ.get('TRITON_CACHE_DIR', '~/.triton') + '/engine/tuned'"}) {
    std::string with_place = tuned;
    with_place.replace(with_place.find("PLACE"), 5, place);
    write_kernels("FACTOR = 1\n", "FACTOR = 1\n" + with_place);
    commit("c0");
    write_kernels("FACTOR = 1\n", "FACTOR = 1.5\n" + with_place);
    commit("c1");
    const Outcome outcome = ab("c0 c1");
    EXPECT_EQ(outcome.exit, 11) << place << outcome.out << outcome.err;
    shell("git -C engine tag -d c0 c1");
  }
}

TEST_F(SidesTest, WhatABuildInstallsForTheUserIsItsSides) {
  write_kernels("import numpy as np",
                "import numpy as np\nimport engine_part\n"
                "open(__file__ + '.from', 'w').write(engine_part.__file__)");
  std::filesystem::create_directory(folder_ / "engine/lib");
  write("engine/lib/engine_part.py", "# first\n");
  commit("c0");
  write("engine/lib/engine_part.py", "# second\n");
  commit("c1");
  ab("c0 c1 --build 'd=$(/usr/bin/python3 -m site --user-site); mkdir -p $d; echo $PWD/lib "
     ">$d/engine.pth'");
  for (const char* tag : {"c0", "c1"}) {
    const std::string commit = commit_of(tag);
    const std::string from = shell("cat cache/moegate/*/" + commit + "/bench/kernels.py.from").out;
    EXPECT_NE(from.find(commit + "/lib/engine_part.py"), std::string::npos) << tag << from;
  }
}

TEST_F(SidesTest, WhatOneBuildInstallsForBothIsNamed) {
  const std::string site = (folder_ / "site").string();
  write_kernels("import numpy as np", "import sys\nsys.path.insert(0, '" + site +
                                          "')\nimport engine_part\nimport numpy as np");
  std::filesystem::create_directory(folder_ / "engine/lib");
  write("engine/lib/engine_part.py", "# first\n");
  commit("c0");
  write("engine/lib/engine_part.py", "# second\n");
  commit("c1");
  // As an editable install: what is installed last leads to the head's checkout.
  const Outcome editable = ab("c0 c1 --build 'ln -sfn $PWD/lib " + site + "'");
  EXPECT_EQ(editable.exit, 21);
  EXPECT_TRUE(
      says(editable, "--base 'c0' (" + commit_of("c0").substr(0, 12) + ") was measured with "));
  EXPECT_TRUE(says(editable, "which belongs to --head 'c1'"));
  std::filesystem::remove(site);
  const Outcome copied = ab("c0 c1 --build 'mkdir -p " + site + "; cp lib/* " + site + "'");
  EXPECT_EQ(copied.exit, 21);
  EXPECT_TRUE(says(copied, "site/engine_part.py, which the build of --head 'c1'"));
  // And as one of the working tree, by nobody's build.
  std::filesystem::remove_all(site);
  std::filesystem::create_symlink(folder_ / "engine/lib", site);
  const Outcome users = ab("c0 c1");
  EXPECT_EQ(users.exit, 21);
  EXPECT_TRUE(says(users, "engine/lib/engine_part.py of the working tree"));
}

}  // namespace
}  // namespace moegate::test
