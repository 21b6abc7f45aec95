// SPDX-License-Identifier: Apache-2.0
// Starting points that `moegate new` writes: they verify as they are, and overwrite nothing. Those
// in C++ are built by tests/scripts/sdk_test.sh.
#include <algorithm>
#include <cstdlib>

#include "harness/base/test_fixture.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class NewTest : public ProgramTest {
 protected:
  NewTest() { setenv("MOEGATE_PYTHON", "/usr/bin/python3", 0); }
  // `new` has the interpreter in its own process, and numpy keeps memory when that ends.
  const ScopedVariable sanitizer_{"LSAN_OPTIONS", "detect_leaks=0"};

  /// Makes a starting point; `files`, a line each, is what it says it wrote.
  void make(const std::string& arguments, const std::string& files) const {
    const Outcome outcome = moegate("new " + arguments);
    EXPECT_EQ(outcome.exit, 0) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, files) << arguments;
    EXPECT_NE(outcome.err.find("next:\n  "), std::string::npos) << outcome.err;
  }
  /// The `n`-th command, from 0, that it says comes next, run with another program for `moegate`.
  Outcome next(const std::string& arguments, int n) const {
    std::string err = moegate("new " + arguments).err;
    for (int line = 0; line <= n; ++line) err = err.substr(err.find("\n  ") + 3);
    return shell("moegate() { '" + program() + "' \"$@\"; }; " + err.substr(0, err.find('\n')));
  }
  void refuse(const std::string& arguments, const std::string& why) const {
    const Outcome outcome = moegate("new " + arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  /// All that is there, but for what this test's shell and Python keep.
  std::string files() const {
    return shell(
               "find . -type f -not -name 'out.txt' -not -name 'err.txt' -not -name '*.pyc' | "
               "LC_ALL=C sort | xargs")
        .out;
  }
};

TEST_F(NewTest, AnOperatorInPythonPassesWithItsControls) {
  const Outcome verified = next("operator row_scale --language python", 0);
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_NE(verified.out.find("10 ok"), std::string::npos) << verified.out;
  const Outcome controls = next("operator row_norm --language python --out other", 1);
  EXPECT_EQ(controls.exit, 0) << controls.err;
  EXPECT_NE(controls.out.find("\ntoken dropped             5         0  "), std::string::npos)
      << controls.out;
  EXPECT_EQ(files(),
            "./moegate.ini ./other/row_norm.py ./other/row_norm.suite ./row_scale.py "
            "./row_scale.suite\n");
}

TEST_F(NewTest, VariantsInPythonAreWrittenOut) {
  for (const std::string op : {"moe_sum", "silu_mul_quant", "topk_sort"}) {
    const Outcome outcome = next("variant my_" + op + " --language python --op " + op, 0);
    EXPECT_EQ(outcome.exit, 0) << op << "\n" << outcome.err;
    // "verified on CPU: 13 ok", and nothing else.
    const std::string counts = outcome.out.substr(outcome.out.rfind(": "));
    EXPECT_TRUE(counts.ends_with(" ok\n")) << op << "\n" << outcome.out;
    EXPECT_EQ(counts.find(','), std::string::npos) << op << "\n" << outcome.out;
  }
}

TEST_F(NewTest, AVariantWithoutATemplateSaysThatItIsNotWritten) {
  make("variant idea --language python --op moe_align", "idea.py\n");
  EXPECT_NE(read("idea.py").find("  topk_ids "), std::string::npos) << read("idea.py");
  const Outcome outcome = moegate(
      "verify --device host --suite tiny --filter ^moe_align/ --variant idea --module idea.py");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" unsupported\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find(" ok"), std::string::npos) << outcome.out;
}

TEST_F(NewTest, AVariantMayBeOfAnOperatorInAFile) {
  make("operator row_scale --language python", "row_scale.py\nrow_scale.suite\nmoegate.ini\n");
  refuse("variant later --language python --op row_scale --module row_scale.py", "--suite");
  refuse("variant later --op row_scale --module row_scale.py --suite row_scale.suite",
         "--language python");
  const Outcome outcome = next(
      "variant later --language python --op row_scale --module row_scale.py --suite "
      "row_scale.suite",
      0);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 unsupported"), std::string::npos) << outcome.out;
}

TEST_F(NewTest, TheProjectsOperatorsNeedNoFlag) {
  make("operator row_scale --language python", "row_scale.py\nrow_scale.suite\nmoegate.ini\n");
  // Of the project's suites the first one that has a case.
  shell("sed -i '/^suite *=/s/= */= sums.suite, /' moegate.ini");
  make("suite sums", "sums.suite\n");
  const Outcome noted = moegate("new variant early --language python --op row_scale");
  EXPECT_NE(noted.err.find("add early.py to moegate.ini"), std::string::npos) << noted.err;
  const Outcome verified = next("variant later --language python --op row_scale", 0);
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_NE(verified.out.find("5 unsupported"), std::string::npos) << verified.out;
  const Outcome listed = next("suite more --op row_scale", 0);
  EXPECT_EQ(listed.exit, 0) << listed.err;
  EXPECT_NE(listed.out.find("\nmore   example  row_scale/"), std::string::npos) << listed.out;
  // Operators of the tool take no heed of the project.
  make("variant idea --language python --op moe_align", "idea.py\n");
  EXPECT_EQ(read("idea.py").find("row_scale"), std::string::npos) << read("idea.py");
}

TEST_F(NewTest, ASuiteIsOneOfItsOperator) {
  const Outcome listed = next("suite mine", 0);
  EXPECT_EQ(listed.exit, 0) << listed.err;
  EXPECT_NE(listed.out.find("\nmine   example  moe_sum/"), std::string::npos) << listed.out;
  const Outcome verified = next("suite rows-8 --op moe_align --out suites", 1);
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_NE(verified.out.find("6 ok"), std::string::npos) << verified.out;
}

TEST_F(NewTest, ASuiteIsOneOfAModel) {
  const std::string config = std::string(MOEGATE_SOURCE_DIR) + "/tests/models/unknown.json";
  const Outcome listed = next("suite mine --tp 2 --ep 4 --model " + config, 0);
  EXPECT_EQ(listed.exit, 0) << listed.err;
  EXPECT_NE(listed.out.find("\nmine-tp2-gate-up "), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("rank=busiest/4"), std::string::npos) << listed.out;
  // The folder of a model, and what the tool runs of its suite.
  shell("mkdir model && cp " + config + " model/config.json");
  const Outcome verified = next("suite other --out suites --model model", 1);
  EXPECT_EQ(verified.exit, 0) << verified.err;
  const std::string counts = verified.out.substr(verified.out.rfind(": "));
  EXPECT_TRUE(counts.ends_with(" ok\n")) << verified.out;
  EXPECT_EQ(files(), "./mine.suite ./model/config.json ./suites/other.suite\n");
}

TEST_F(NewTest, AProjectHasWhatItBuildsWith) {
  make("variant idea --op moe_sum",
       "idea/idea.cc\nidea/.gitignore\nidea/CMakeLists.txt\nidea/README.md\n");
  EXPECT_EQ(read("idea/idea.cc").find("SPDX"), std::string::npos) << "the file is its user's";
  // A further one leaves the project as it is.
  write("idea/CMakeLists.txt", "mine\n");
  make("variant other --op moe_sum --language cuda --out idea", "idea/other.cu\n");
  EXPECT_EQ(read("idea/CMakeLists.txt"), "mine\n");
  // A moegate.ini is told of the module, unless it names it.
  const std::string third = "variant third --op moe_sum --out idea", told = "every night, add";
  write("moegate.ini", "[project]\nsuite = tiny\n");
  EXPECT_NE(moegate("new " + third).err.find(told + " idea/build/my_kernels.so to moegate.ini"),
            std::string::npos);
  shell("rm idea/third.cc; echo 'module = idea/build/my_kernels.so' >> moegate.ini");
  const Outcome named = moegate("new " + third);
  EXPECT_EQ(named.exit, 0) << named.err;
  EXPECT_EQ(named.err.find(told), std::string::npos) << named.err;
}

TEST_F(NewTest, InACheckoutAVariantGoesToItsOperator) {
  shell(
      "mkdir -p harness/kernel kernels/moe_sum; touch harness/kernel/kernel.h "
      "kernels/moe_sum/moe_sum.h");
  make("variant idea --op moe_sum", "kernels/moe_sum/host_idea.cc\n");
  make("variant idea --op moe_sum --language cuda", "kernels/moe_sum/idea.cu\n");
  EXPECT_EQ(read("kernels/moe_sum/idea.cu").find("// SPDX-License-Identifier: Apache-2.0\n"), 0u);
}

TEST_F(NewTest, NothingIsOverwrittenOrHalfWritten) {
  write("mine.suite", "# mine\n");
  refuse("operator mine --language python", "mine.suite is there and is not overwritten");
  refuse("suite mine", "mine.suite is there");
  EXPECT_EQ(files(), "./mine.suite\n");
  EXPECT_EQ(read("mine.suite"), "# mine\n");
  refuse("suite other --out mine.suite", "mine.suite");
  make("variant idea --op moe_sum",
       "idea/idea.cc\nidea/.gitignore\nidea/CMakeLists.txt\nidea/README.md\n");
  refuse("variant idea --op moe_sum", "idea/idea.cc is there");
}

TEST_F(NewTest, WhatCannotBeIsRefused) {
  refuse("", "choose operator, variant or suite");
  refuse("kernel x", "'kernel'");
  refuse("operator", "give a NAME");
  refuse("operator 8bit", "'8bit' cannot name an operator");
  refuse("operator ../up", "'../up'");
  refuse("operator RowNorm", "lower-case");
  refuse("operator none", "'none'");
  refuse("suite mine.suite", "'mine.suite' cannot name a suite");
  refuse("operator moe_sum", "there is an operator 'moe_sum'");
  refuse("operator mine --op moe_sum", "--op");
  refuse("suite mine --language cuda", "--language cuda");
  refuse("variant idea", "--op OPERATOR");
  refuse("variant idea --op moe_smu", "'moe_smu' (did you mean 'moe_sum'?); known: ");
  refuse("variant idea --op mine", "; name the file of one of your own with --module");
  refuse("variant blocked --op moe_sum", "has a host variant 'blocked'");
  refuse("variant idea --op moe_sum --language rust", "use cpp, cuda or python");
  refuse("suite mine --suite nowhere", "no suite 'nowhere'");
  refuse("suite mine --tp 2", "--tp needs --model");
  refuse("operator mine --model x", "--model has no meaning here");
  refuse("suite mine --model x --op moe_sum", "--op has no meaning here");
  refuse("suite mine --model x --ep 0", "--ep 0; use at least 1");
  refuse("suite mine --model nowhere", "nowhere");
  EXPECT_EQ(files(), "\n");
}

}  // namespace
}  // namespace moegate::test
