// SPDX-License-Identifier: Apache-2.0
// An A/B of two environments: virtual ones, whose only package of their own is a stub with another
// constant.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/store/sqlite.h"
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

class EnvironmentsTest : public PythonTest {
 protected:
  EnvironmentsTest() {
    // The kernel is what its package makes of it; where it is imported, a test says.
    write_kernels("", "import stub");
    make("a", "1.0", "1");
    make("b", "1.0", "1");
  }

  void write_kernels(const std::string& at_import, const std::string& in_launch) const {
    write_scaled("kernels.py", "1");
    std::string text = at_import + "\n" + read("kernels.py");
    const std::string launch = "def other(p):\n";
    text.replace(text.find(launch), launch.size(), launch + "    " + in_launch + "\n");
    const std::string scaled = "p.out *= np.float32(FACTOR)";
    text.replace(text.find(scaled), scaled.size(), "p.out *= np.float32(stub.CONSTANT)");
    write("kernels.py", text.substr(0, text.rfind("@moegate.variant")));
  }
  /// An environment with a stub.
  void make(const std::string& name, const std::string& version,
            const std::string& constant) const {
    const Outcome made = shell(
        "rm -rf " + name + " && /usr/bin/python3 -I -m venv --without-pip --system-site-packages " +
        name + " && cd " + name + "/lib/python3*/site-packages && mkdir stub stub-" + version +
        ".dist-info && echo 'CONSTANT = " + constant + "' >stub/__init__.py && cd stub-" + version +
        ".dist-info && printf 'Metadata-Version: 2.1\\nName: stub\\nVersion: " + version +
        "\\n' >METADATA && echo 'stub/__init__.py,sha256=" + constant + ",1' >RECORD");
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  Outcome ab(const std::string& sides, const std::string& before = "") const {
    return shell(before + program() + " ab --module kernels.py --suite ./doubled.suite --variant " +
                 "other --db ab.sqlite --out v.json --fail-at 900% --rounds 2,2,0 " + sides +
                 kQuick);
  }
  Outcome run(const std::string& environment, const std::string& more) const {
    return shell("MOEGATE_PYTHON=" + environment + "/bin/python " + program() +
                 " run --module kernels.py --suite ./doubled.suite --db r.sqlite " + more + kQuick);
  }
  /// A run as quiet as if nobody else used this machine.
  void measure(const std::string& environment) const {
    const Outcome measured = run(environment, "");
    ASSERT_EQ(measured.exit, 0) << measured.err;
    Database((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE)
        .execute(
            "UPDATE result SET status = 'ok', why = '', ratio = 1, checksum = 0, "
            "verified_checksum = 0");
  }
  static constexpr const char* kBoth = "--base python=a/bin/python --head python=b/bin/python ";
};

TEST_F(EnvironmentsTest, OneItemThatDiffersIsNamedAndIsTheCause) {
  make("b", "1.1", "1.5");
  const Outcome outcome = ab(kBoth);
  EXPECT_EQ(outcome.exit, 11);
  EXPECT_TRUE(says(outcome, "environment: stub 1.0 -> 1.1\n"));
  EXPECT_TRUE(says(outcome, "(stub 1.0 -> 1.1)"));
  const auto verdict = nlohmann::json::parse(read("v.json"));
  EXPECT_EQ(verdict["environment"]["changed"].dump(),
            R"([{"base":"1.0","head":"1.1","kind":"package","name":"stub"}])");
  const Outcome report =
      moegate("report environment --run 2 --against 1 --db ab.sqlite --format csv");
  EXPECT_TRUE(says(report, "package,stub,1.0,1.1")) << "and nothing else";
  EXPECT_EQ(std::ranges::count(report.out, '\n'), 2) << report.out;
  EXPECT_TRUE(
      says(moegate("gate --db ab.sqlite --against 1 --run 2"), "environment: stub 1.0 -> 1.1"));
}

TEST_F(EnvironmentsTest, AGateNamesWhatItsBaselinesEnvironmentHadOtherwise) {
  make("b", "1.1", "1");
  const auto gate = [&](const std::string& baseline) {
    return moegate("gate --db r.sqlite --out v.json " + baseline);
  };
  measure("a");
  EXPECT_FALSE(says(gate("--candidate c"), "environment:"));
  measure("b");
  EXPECT_TRUE(says(gate("--candidate c"), "environment: stub 1.0 -> 1.1"));
  EXPECT_EQ(nlohmann::json::parse(read("v.json"))["environment"]["changed"].dump(),
            R"([{"base":"1.0","head":"1.1","kind":"package","name":"stub"}])");
  const Outcome blessed =
      moegate("bless --db r.sqlite --baselines . --accept dirty --reason 'stub 1.1'");
  EXPECT_EQ(blessed.exit, 0) << blessed.err;
  EXPECT_FALSE(says(gate("--baselines ."), "environment:"));
  measure("a");
  EXPECT_TRUE(says(gate("--baselines ."), "environment: stub 1.1 -> 1.0"));
  EXPECT_NE(shell("cat */doubled.tsv").out.find("\n#environment [\"package\",\"stub\",\"1.1\",\""),
            std::string::npos);
}

TEST_F(EnvironmentsTest, AFirstLaunchThatTakesLongIsNoTimeout) {
  make("b", "1.1", "1; import time; time.sleep(7)");
  const Outcome outcome = ab(std::string(kBoth) + "--case-timeout 6s ");
  EXPECT_TRUE(says(outcome, "environment: stub 1.0 -> 1.1; 1 of 1 row ran other code\n"));
  EXPECT_EQ(query("ab.sqlite", "SELECT count(*) FROM result WHERE status = 'timeout'"), "0");
  EXPECT_EQ(
      query("ab.sqlite",
            "SELECT min(value > 6) FROM metric JOIN result USING (result_id) JOIN process USING "
            "(process_id) WHERE run_id = 2 AND metric.name = 'first_call'"),
      "1");
  write_kernels("import time\ncalls = []",
                "import stub\n    calls.append(1)\n    time.sleep(600 * (len(calls) == 2))");
  const Outcome hung = run("b", "--variant other --rounds 1 --case-timeout 6s");
  EXPECT_EQ(hung.exit, 13);
  EXPECT_TRUE(says(hung, "no answer within 6 s; if it needs more, raise --case-timeout"));
}

TEST_F(EnvironmentsTest, OfSeveralItemsNoneIsTheCause) {
  make("b", "1.1", "1.5");
  const Outcome outcome = ab(std::string(kBoth) + "--head OMP_DYNAMIC=true --head MY_SWITCH=1");
  EXPECT_EQ(outcome.exit, 11);
  EXPECT_TRUE(says(outcome, "stub 1.0 -> 1.1, MY_SWITCH unset -> 1, OMP_DYNAMIC unset -> true\n"));
  EXPECT_NE(read("v.json").find("(3 items differ: moegate report environment)"), std::string::npos);
}

TEST_F(EnvironmentsTest, TwoThatAreTheSameAreNotCompared) {
  const Outcome same = ab(kBoth);
  EXPECT_EQ(same.exit, 2);
  EXPECT_TRUE(says(same, "both sides are the same"));
  const Outcome measured = ab(std::string(kBoth) + "--measure-identical");
  EXPECT_EQ(measured.exit, 0) << measured.err;
  EXPECT_EQ(query("ab.sqlite", "SELECT count(DISTINCT code) FROM result WHERE variant = 'other'"),
            "1")
      << "the same code in two places";
}

TEST_F(EnvironmentsTest, APackageOfTheSameVersionAndOtherContentIsSeen) {
  make("b", "1.0", "1.5");
  const Outcome outcome = ab(kBoth);
  EXPECT_EQ(outcome.exit, 11);
  EXPECT_TRUE(says(outcome, "environment: stub 1.0 (other content)\n"));
}

TEST_F(EnvironmentsTest, NoVariableLeadsASideToOtherPackages) {
  make("b", "1.1", "1.5");
  const std::string shadow = "PYTHONPATH=$(echo a/lib/python3*/site-packages) ";
  EXPECT_EQ(ab(kBoth, shadow).exit, 11) << "the head has a stub of its own";
  const Outcome stated =
      ab(std::string(kBoth) + "--head PYTHONPATH=$(echo $PWD/a/lib/python3*/site-packages)");
  EXPECT_NE(stated.exit, 11) << "the user led it to the base's" << stated.out;
}

TEST_F(EnvironmentsTest, EachEnvironmentHasCachesOfItsOwn) {
  make("b", "1.1", "1");
  write_kernels("import os, stub\nopen(os.environ['TRITON_CACHE_DIR'] + '/made', 'w')", "pass");
  EXPECT_TRUE(says(ab(kBoth), "environment: stub 1.0 -> 1.1; 1 of 1 row ran other code\n"));
  EXPECT_EQ(shell("ls -d out/jit/*/TRITON_CACHE_DIR/made | wc -l").out, "2\n");
}

TEST_F(EnvironmentsTest, ASecretIsStoredNowhereAsText) {
  const Outcome outcome = ab(std::string(kBoth) + "--base VLLM_API_KEY=hunter2 " +
                             "--head VLLM_API_KEY=hunter3 --head=MY_TOKEN=hunter4");
  EXPECT_TRUE(says(outcome, "VLLM_API_KEY (another value)"));
  EXPECT_EQ(shell("grep -rl hunter ab.sqlite v.json out").out, "");
  EXPECT_FALSE(says(outcome, "hunter"));
  EXPECT_EQ(query("ab.sqlite",
                  "SELECT count(*) FROM environment_item WHERE name = 'VLLM_API_KEY' "
                  "AND value = '' AND length(digest) = 16"),
            "2");
}

TEST_F(EnvironmentsTest, AnInterpreterThatCannotBeUsedIsRefusedWithItsSide) {
  const Outcome none = ab("--head python=/no/python");
  EXPECT_EQ(none.exit, 2);
  EXPECT_TRUE(says(none, "--head python=/no/python: cannot be run"));
  write("old", "#!/bin/sh\nprintf '/old\\n3.7.9\\n/lib/libpython3.7.so\\n'\n");
  shell("chmod +x old");
  const Outcome old = ab("--base python=./old");
  EXPECT_EQ(old.exit, 2);
  EXPECT_TRUE(says(old, "/old: is Python 3.7.9; give one from 3.8 on"));
  write("static", "#!/bin/sh\nprintf '/s\\n3.12.1\\nlibpython-no.so\\n'\n");
  shell("chmod +x static");
  EXPECT_TRUE(says(ab("--base python=./static"), "has no shared library (libpython-no.so)"));
  EXPECT_TRUE(says(moegate("ab --suite tiny --base python=a/bin/python"), "give --module FILE.py"));
}

TEST_F(EnvironmentsTest, AFileThatTheBaseAloneImportsIsAHeadThatDoesNotBuild) {
  write_kernels("import stub", "pass");
  shell("rm -r b/lib/python3*/site-packages/stub*");
  const Outcome outcome = ab(kBoth);
  EXPECT_EQ(outcome.exit, 21);
  EXPECT_TRUE(says(outcome, "--head, where --base can do it: --module"));
  EXPECT_TRUE(says(outcome, "No module named 'stub'"));
}

}  // namespace
}  // namespace moegate::test
