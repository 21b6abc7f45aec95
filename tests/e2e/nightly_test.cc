// SPDX-License-Identifier: Apache-2.0
// A whole night on the host, in a home of its own with suites of one case. How busy this machine
// is decides whether a canary can be seen, so the exit code is compared with what was printed
// about it.
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class NightlyProgramTest : public ProgramTest {
 protected:
  NightlyProgramTest() {
    const std::string source = MOEGATE_SOURCE_DIR;
    shell("mkdir -p home/suites home/baselines && cp -r '" + source + "/reports' home");
    const std::string head = "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[m]\ntokens = ";
    write("home/suites/tiny.suite", head + "3\n");
    write("home/suites/smoke.suite", head + "16\n");
    write("home/suites/one.suite", head + "5\n");
    write("home/suites/two.suite", head + "6\n");
  }
  Outcome nightly(const std::string& flags) const {
    return shell("MOEGATE_HOME=home '" + program() + "' nightly --device host " + flags);
  }
};

TEST_F(NightlyProgramTest, TwoSuitesOneVerdict) {
  const Outcome first = nightly("--suite one --suite two --rounds 2 --out 'an out'");
  const bool missed = first.out.find("a canary was missed") != std::string::npos;
  EXPECT_EQ(first.exit, missed ? 21 : 0) << first.out << first.err;
  EXPECT_EQ(first.out.rfind("canary ", 0), 0u) << first.out;
  EXPECT_NE(first.out.find("NO BASELINE"), std::string::npos) << first.out;
  EXPECT_NE(first.err.find("verified on"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("negative controls on"), std::string::npos) << first.err;
  for (const char* name : {"doctor.md", "report.md", "junit.xml", "verdict.json"}) {
    EXPECT_NE(read(std::string("an out/") + name), "") << name;
  }
  EXPECT_NE(read("an out/pages/index.html").find("night=1"), std::string::npos);
  EXPECT_NE(read("an out/verdict.json").find("\"two\""), std::string::npos);
  EXPECT_EQ(shell("ls 'an out/artifacts' | wc -l").out, "1\n");
  EXPECT_EQ(
      query("an out/results.sqlite", "SELECT label LIKE 'nightly-%' FROM run WHERE run_id = 1"),
      "1");

  const Outcome second = nightly("--suite one --require-baseline --rounds 2 --out 'an out'");
  EXPECT_EQ(second.exit, second.out.find("a canary was missed") != std::string::npos ? 21 : 22)
      << second.out << second.err;
}

TEST_F(NightlyProgramTest, WhatCannotBeMeasuredLeavesNoVerdict) {
  shell("mkdir out");
  write("out/verdict.json", "an earlier night's");
  const Outcome outcome = nightly("--suite none --out out");
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("none"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "verdict.json"));
  EXPECT_EQ(nightly("--suit one --out out").exit, 2);
  EXPECT_EQ(nightly("--rounds 0 --out out").exit, 2);
}

}  // namespace
}  // namespace moegate::test
