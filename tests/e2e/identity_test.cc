// SPDX-License-Identifier: Apache-2.0
// What counts as the code of a kernel in Python: all that it loaded or read, wherever that lies.
#include "harness/store/sqlite.h"
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

class IdentityTest : public PythonTest {
 protected:
  /// A checkout `engine`, whose bench/kernels.py begins with `imports` and runs `inside` in
  /// every launch.
  void make_engine(const std::string& imports, const std::string& inside) const {
    ASSERT_EQ(shell("git init -q engine && mkdir -p engine/bench engine/impl engine/other && "
                    "touch engine/impl/__init__.py")
                  .exit,
              0);
    std::string text = read("operator.py");
    const std::string launch = "def other(p):\n";
    text.replace(text.find(launch), launch.size(), launch + "    " + inside + "\n");
    write("engine/bench/kernels.py", "import os, sys\n" + imports + text);
    write("engine/impl/scale.py", "SCALE = 1\n");
    write("engine/other/unused.py", "SCALE = 1\n");
  }
  /// What the store says of variant `other` once it was measured.
  std::string code(const std::string& engine = "engine", const std::string& before = "") const {
    const Outcome ran = shell(before + program() + " run --rounds 1 --module " + engine +
                              "/bench/kernels.py " + kDoubled + kQuick);
    EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
    return query("results.sqlite",
                 "SELECT code FROM result WHERE variant = 'other' ORDER BY result_id DESC LIMIT 1");
  }
  /// That a file of the engine counts; that others and the place of the checkout do not.
  void expect_counts(const std::string& file, const std::string& changed) const {
    const std::string before = code();
    EXPECT_EQ(before.size(), 16u);
    write("engine/other/unused.py", "SCALE = 3\n");
    EXPECT_EQ(shell("rm -rf copied && cp -a engine copied").exit, 0);
    EXPECT_EQ(code("copied"), before) << "in another place";
    const std::string as_it_was = read(file);
    write(file, changed);
    EXPECT_NE(code(), before) << file;
    write(file, as_it_was);
    EXPECT_EQ(code(), before) << file << " as it was";
  }
  static constexpr const char* kUp =
      "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))\n";
};

TEST_F(IdentityTest, APackageOutsideOfTheFileFolderCounts) {
  make_engine(std::string(kUp) + "from impl import scale\n", "scale.SCALE");
  expect_counts("engine/impl/scale.py", "SCALE = 2\n");
}

TEST_F(IdentityTest, APackageThatIsALinkCounts) {
  make_engine("from linked import scale\n", "scale.SCALE");
  ASSERT_EQ(shell("ln -s ../impl engine/bench/linked").exit, 0);
  expect_counts("engine/impl/scale.py", "SCALE = 2\n");
}

TEST_F(IdentityTest, WhatALaunchImportsCounts) {
  make_engine(kUp, "import impl.scale");
  expect_counts("engine/impl/scale.py", "SCALE = 2\n");
}

TEST_F(IdentityTest, AFileThatIsReadCounts) {
  make_engine(
      "import json\nwith open(os.path.join(os.path.dirname(__file__), 'E=8.json')) as file:\n"
      "    CONFIG = json.load(file)\n",
      "CONFIG['repeat']");
  write("engine/bench/E=8.json", "{\"repeat\": 1}");
  expect_counts("engine/bench/E=8.json", "{\"repeat\": 3}");
}

TEST_F(IdentityTest, AnArrayThatALaunchReadsCounts) {
  make_engine("", "np.fromfile(os.path.join(os.path.dirname(__file__), 'table.bin'), np.uint8)");
  write("engine/bench/table.bin", "one");
  expect_counts("engine/bench/table.bin", "two");
}

// As an editable install does, whose path file names a checkout.
TEST_F(IdentityTest, APackageOutsideOfTheCheckoutCounts) {
  make_engine("import elsewhere\n", "elsewhere.SCALE");
  ASSERT_EQ(shell("mkdir packages").exit, 0);
  const std::string path = "PYTHONPATH=" + (folder_ / "packages").string() + " ";
  write("packages/elsewhere.py", "SCALE = 1\n");
  const std::string before = code("engine", path);
  write("packages/elsewhere.py", "SCALE = 2\n");
  EXPECT_NE(code("engine", path), before);
}

TEST_F(IdentityTest, WhatCannotBeReadAgainIsNeverIdentical) {
  make_engine(
      "import subprocess\nGONE = __file__ + '.gone'\nsubprocess.run(['touch', GONE], check=True)\n"
      "open(GONE).close()\nos.remove(GONE)\n",
      "pass");
  EXPECT_EQ(code(), "") << "it was read, and is not there any more";
}

TEST_F(IdentityTest, AReplayHasAllThatTheBaselinesKernelsWereMadeOf) {
  make_engine(std::string(kUp) + "from linked import scale\n", "time.sleep(scale.SCALE * 1e-3)");
  // Without its last variant, whose output is wrong: such a run is no candidate.
  const std::string text = read("engine/bench/kernels.py");
  write("engine/bench/kernels.py",
        "import time\n" + text.substr(0, text.rfind("@moegate.variant")));
  ASSERT_EQ(shell("ln -s ../impl engine/bench/linked").exit, 0);
  const std::string kernels = " --module engine/bench/kernels.py ";
  // Levels as of a quiet machine: whether this one is busy must not decide whether the row is
  // a suspect.
  const auto run = [&](const char* more, const char* level) {
    const Outcome ran = moegate("run --rounds 2 --suite ./doubled.suite" + kernels + more + kQuick);
    Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE)
        .execute(
            "UPDATE result SET status = 'ok', why = '', checksum = 0, judged = 'span', "
            "impossible = 0, suspect_warm = 0, "
            "samples = 20, span_ns = v, min_ns = 0.9 * v, mean_ns = v FROM (SELECT result_id AS "
            "id, "
            "iif(variant = 'other', " +
            std::string(level) +
            ", 1e6) AS v FROM result JOIN process USING (process_id) "
            "WHERE run_id = (SELECT max(run_id) FROM process)) WHERE result_id = id");
    return ran;
  };
  const Outcome kept = run("--keep-artifact ", "1e6");
  ASSERT_EQ(kept.exit, 0) << kept.err;
  EXPECT_EQ(kept.err.find("cannot be kept"), std::string::npos) << kept.err;
  const std::string program = shell("printf %s artifacts/*/bin/moegate").out;
  moegate("gate --candidate cand");
  write("engine/impl/scale.py", "SCALE = 3\n");
  ASSERT_EQ(run("", "3e6").exit, 0);
  const Outcome judged = moegate("gate --candidate cand" + kernels + "--replay-program " + program);
  EXPECT_NE(judged.err.find("replaying "), std::string::npos) << judged.err;
  EXPECT_NE(judged.exit, 2) << judged.out << judged.err;
  const auto codes = [&](const std::string& run) {
    return query("results.sqlite",
                 "SELECT group_concat(DISTINCT code) FROM result JOIN process USING (process_id) "
                 "WHERE variant = 'other' AND run_id = " +
                     run);
  };
  EXPECT_EQ(codes("3"), codes("1")) << "the base's side of the replay";
  EXPECT_EQ(codes("4"), codes("2"));
  EXPECT_NE(codes("1"), codes("2"));
}

TEST_F(IdentityTest, TheTreeStaysAsItWas) {
  make_engine(std::string(kUp) + "from impl import scale\n", "scale.SCALE");
  code();
  EXPECT_EQ(shell("find engine -name __pycache__").out, "");
}

}  // namespace
}  // namespace moegate::test
