// SPDX-License-Identifier: Apache-2.0
// What people see in a terminal: the table that a run ends with, tables cut to what was asked for,
// the nearest store, suggestions, widths, colours, completion.
#include "tests/e2e/program.h"

namespace moegate {
namespace {

class TerminalTest : public ProgramTest {
 protected:
  TerminalTest() {
    write("quick.suite",
          "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[small]\ntokens = 3, 20\n");
  }
  static std::string run(const std::string& more = "") {
    return "run --suite ./quick.suite --device host --min-samples 10 --max-samples 20 --budget "
           "100ms --rounds 2 " +
           more;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(TerminalTest, ARunEndsWithWhatItMeasured) {
  const Outcome all = moegate(run("--db a.sqlite"));
  ASSERT_EQ(all.exit, 0) << all.err;
  for (const char* part :
       {" us |", "| before ", "| Speedup ", "| fused ", "| chain ", "tokens=20,topk=2",
        "\nmore: moegate report latency --run 1 --db "
        "a.sqlite\nrun 1 in a.sqlite on "}) {
    EXPECT_TRUE(has(all.out, part)) << part << "\n" << all.out;
  }
  // What a variant alone is compared with was not measured: no such columns.
  const Outcome alone = moegate(run("--kernel fused"));
  EXPECT_TRUE(has(alone.out, " us |")) << alone.out;
  EXPECT_FALSE(has(alone.out, "Speedup")) << alone.out;
}

TEST_F(TerminalTest, ARunSaysOfEachRowWhyItIsNotOk) {
  const Outcome outcome = saboteur("abort", run("--filter tokens=3,"));
  EXPECT_EQ(outcome.exit, 13) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "| crashed ")) << outcome.out;
  const std::string why =
      query("results.sqlite", "SELECT min(why) FROM result WHERE status = 'crashed'");
  EXPECT_TRUE(has(outcome.out, why)) << why << "\n" << outcome.out;
  EXPECT_TRUE(has(moegate("run --resume 1").err, "complete"));
}

TEST_F(TerminalTest, ALongRunShowsFortyRowsAndWhereTheOthersAre) {
  std::string tokens = "--axis tokens=1";
  for (int i = 2; i <= 45; ++i) tokens += "," + std::to_string(i);
  const Outcome outcome = moegate(run("--kernel fused " + tokens));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "\n5 more rows: moegate report summary --run 1\n")) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2 + 40 + 3);
}

}  // namespace
}  // namespace moegate
