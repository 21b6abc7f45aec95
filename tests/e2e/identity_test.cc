// SPDX-License-Identifier: Apache-2.0
// What counts as the code of a kernel in Python: all that it loaded or read, wherever that lies.
#include "tests/e2e/python_fixture.h"

namespace moegate {
namespace {

class IdentityTest : public PythonTest {
 protected:
  /// A checkout `engine`, whose bench/kernels.py begins with `imports` and runs `inside` in every launch.
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
    const Outcome ran = shell(before + program() + " run --rounds 1 --kernels " + engine +
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

TEST_F(IdentityTest, TheTreeStaysAsItWas) {
  make_engine(std::string(kUp) + "from impl import scale\n", "scale.SCALE");
  code();
  EXPECT_EQ(shell("find engine -name __pycache__").out, "");
}

}  // namespace
}  // namespace moegate
