// SPDX-License-Identifier: Apache-2.0
// A/B end to end on the host: which runs it makes, what it judges, and how bad input is refused.
// Whether a slow-down is seen is a question to a quiet machine, so no test here asks it.
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class AbTest : public ProgramTest {
 protected:
  AbTest() {
    write("quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[small]\ntokens = 3, 20\n");
  }
  Outcome ab(const std::string& arguments, const std::string& suite = "./quick.suite") const {
    return moegate("ab --suite " + suite +
                   " --device host --db r.sqlite --min-samples 10 --max-samples 20 --budget 50ms "
                   "--rounds 2,2,0 " +
                   arguments);
  }
};

TEST_F(AbTest, TheSameProgramLaunchesTheSameCode) {
  // A busy machine must not look like a file that the programs read and that changed.
  const Outcome outcome = ab("--base program=" + program() + " --out v.json --fail-at 900%");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("4 identical"), std::string::npos) << outcome.out;
  EXPECT_EQ(query("r.sqlite", "SELECT group_concat(value) FROM tag WHERE name = 'ab'"),
            "base,head");
  // One round tells what is launched; nothing needs a second one.
  EXPECT_EQ(query("r.sqlite", "SELECT group_concat(rounds) FROM run"), "1,1");
}

TEST_F(AbTest, ANewStoreHasTheCeilingsAndTheToolsKernelsASuite) {
  const Outcome outcome = moegate(
      "ab --device host --db new.sqlite --filter '^moe_sum/.*tokens=16(,|$)' --rounds 2,2,0 "
      "--min-samples 10 --max-samples 20 --budget 50ms --base program=" +
      program() + " --fail-at 900%");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(query("new.sqlite", "SELECT count(*) FROM ceiling"), "0") << "for percentages of them";
  EXPECT_EQ(query("new.sqlite", "SELECT DISTINCT json_extract(options, '$.suites[0]') FROM run"),
            "smoke");
}

TEST_F(AbTest, EachSideLeadsOnceInTwoRounds) {
  ab("--base program=" + program() + " --measure-identical");
  const std::string order =
      query("r.sqlite",
            "SELECT group_concat(value, ' ') FROM (SELECT value FROM process p JOIN tag "
            "USING (run_id) WHERE round < 2 ORDER BY process_id)");
  EXPECT_TRUE(order == "base head head base" || order == "head base base head") << order;
  EXPECT_EQ(query("r.sqlite",
                  "SELECT count(DISTINCT json_extract(options, '$.order_seed')) FROM run "
                  "WHERE json_extract(options, '$.order_seed') <> 0"),
            "1");
}

TEST_F(AbTest, AWrongHeadFailsAndAWrongBaseDoesNot) {
  const std::string bad = sabotaged("scale"), good = sabotaged("none");
  EXPECT_EQ(ab("--base program=" + good + " --head program=" + bad).exit, 11);
  const Outcome fixed = ab("--base program=" + bad + " --head program=" + good);
  EXPECT_EQ(fixed.exit, 0) << fixed.out;
  EXPECT_NE(fixed.out.find("2 new"), std::string::npos) << fixed.out;
}

TEST_F(AbTest, AVariantThatTheHeadLostIsMissing) {
  const Outcome outcome =
      ab("--base program=" + sabotaged("none") + " --head program=" + program());
  EXPECT_EQ(outcome.exit, 13) << outcome.out;
  EXPECT_NE(outcome.out.find("2 missing"), std::string::npos) << outcome.out;
}

TEST_F(AbTest, ACaseThatTheHeadsSuiteLostIsMissing) {
  for (const char* side : {"base", "head"}) {
    for (const char* data : {"suites", "reports"}) {
      std::filesystem::create_directories(folder_ / side / data);
    }
    std::filesystem::copy_file(program(), folder_ / side / "moegate");
    write(std::string(side) + "/suites/quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[small]\ntokens = " +
              std::string(side[0] == 'b' ? "3, 20\n" : "3\n"));
  }
  const Outcome outcome = shell(
      "MOEGATE_HOME=$PWD/head " + program() +
      " ab --suite quick --device host --db r.sqlite --min-samples 10 --max-samples 20 --budget "
      "50ms --rounds 2,2,0 --base program=base/moegate "
      "--head program=head/moegate");
  EXPECT_EQ(outcome.exit, 13) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("2 missing"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("changed: 2 rows of the base's suites are missing"), std::string::npos)
      << outcome.out;
}

TEST_F(AbTest, TwoVariantsAreOneCase) {
  const Outcome outcome = ab("--base variant=chain --head variant=fused --fail-on accuracy");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of 2 rows"), std::string::npos) << outcome.out;
}

TEST_F(AbTest, OperatorsThatHaveOneOfTwoVariantsAreLeftOut) {
  write("mixed.suite",
        "tokens = 1\ntopk = 2\n[silu]\nop = silu_mul_quant\ninter = 128\n"
        "[routing]\nop = topk_sort\nexperts = 8\nhidden = 64\n");
  const Outcome outcome =
      ab("--base variant=chain --head variant=fused --fail-on accuracy", "./mixed.suite");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("of 1 row, on "), std::string::npos) << outcome.out;
  const Outcome none = ab("--base variant=two_passes --head variant=chain", "./mixed.suite");
  EXPECT_EQ(none.exit, 13);
  EXPECT_NE(none.err.find("no case has both two_passes and chain"), std::string::npos) << none.err;
}

TEST_F(AbTest, WhatCannotBeComparedIsRefused) {
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const Outcome outcome = ab(arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << outcome.out;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  };
  refused("", "nothing to compare");
  refused("--base program=./none", "./none: this program does not answer like a moegate");
  refused("--base program=/bin/true", "/bin/true: this program does not answer like a moegate");
  refused("--variant chain", "nothing to compare");
  refused("--variant a --variant b", "write --base variant=a --head variant=b");
  refused("--base variant=a --head variant=b --variant c", "leave it out");
  refused("--base variant=a", "--base names a variant and --head none");
  EXPECT_EQ(ab("--base variant=no --head variant=fused").exit, 13);
}

TEST_F(AbTest, SelftestCatchesItsCanaries) {
  const Outcome outcome = moegate(
      "selftest canaries --suite ./quick.suite --device host --db r.sqlite --min-samples 10 "
      "--max-samples 20 --budget 50ms");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("outputs x 1.05: 4 of 4 rows caught"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(query("r.sqlite", "SELECT injected FROM calibration"), "1.0");
}

}  // namespace
}  // namespace moegate::test
