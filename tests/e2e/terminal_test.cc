// SPDX-License-Identifier: Apache-2.0
// What people see in a terminal: the table that a run ends with, tables cut to what was asked for,
// the nearest store, suggestions, widths, colours.
#include <algorithm>
#include <sstream>

#include "harness/base/terminal.h"
#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
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
  for (const char* part : {" us  ", "  before ", "  Speedup ", "  fused ", "  chain ", "tokens=20",
                           "\nmore: moegate report latency --run 1 --db "
                           "a.sqlite\nrun 1 in a.sqlite on "}) {
    EXPECT_TRUE(has(all.out, part)) << part << "\n" << all.out;
  }
  // What a variant alone is compared with was not measured: no such columns.
  const Outcome alone = moegate(run("--variant fused"));
  EXPECT_TRUE(has(alone.out, " us ")) << alone.out;
  EXPECT_FALSE(has(alone.out, "Speedup")) << alone.out;
}

TEST_F(TerminalTest, ARunSaysOfEachRowWhyItIsNotOk) {
  const Outcome outcome = saboteur("abort", run("--filter tokens=3,"));
  EXPECT_EQ(outcome.exit, 13) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "crashed")) << outcome.out;
  const std::string why =
      query("results.sqlite", "SELECT min(why) FROM result WHERE status = 'crashed'");
  EXPECT_TRUE(has(outcome.out, why)) << why << "\n" << outcome.out;
  EXPECT_TRUE(has(moegate("run --resume 1").err, "complete"));
  const Outcome red =
      shell("CLICOLOR_FORCE=1 NO_COLOR= COLUMNS=80 " + program() + " report summary --format text");
  EXPECT_TRUE(has(red.out, "\033[31mcrashed\033[0m")) << red.out;
}

TEST_F(TerminalTest, ALongRunShowsFortyRowsAndWhereTheOthersAre) {
  std::string tokens = "--axis tokens=1";
  for (int i = 2; i <= 45; ++i) tokens += "," + std::to_string(i);
  const Outcome outcome = moegate(run("--variant fused " + tokens));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "\n5 more rows: moegate report summary --run 1\n")) << outcome.out;
  int rows = 0;
  for (size_t at = 0; (at = outcome.out.find("tokens=", at)) != std::string::npos; ++at) {
    rows += std::isdigit(static_cast<unsigned char>(outcome.out.at(at + 7))) != 0 ? 1 : 0;
  }
  EXPECT_EQ(rows, 40) << outcome.out;
}

/// What the program prints on a terminal 80 characters wide, its line ends as in a file.
std::string on_terminal(const Outcome& outcome) {
  std::string text = outcome.out;
  std::erase(text, '\r');
  return text;
}

size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, display_width(line));
  }
  return longest;
}

TEST_F(TerminalTest, TablesFitTheTerminal) {
  const Outcome pseudo = shell("script -qec true /dev/null");
  if (pseudo.exit != 0) GTEST_SKIP() << "no pseudo-terminal: script says " << pseudo.err;
  ASSERT_EQ(moegate(run("--axis tokens=3,20,100")).exit, 0);
  const auto shown = [&](const std::string& environment, const std::string& arguments) {
    return on_terminal(shell("env -u CLICOLOR_FORCE TERM=xterm COLUMNS=80 " + environment +
                             " script -qec '" + program() + " " + arguments + "' /dev/null"));
  };
  for (const char* command : {"report latency", "report summary", "report accuracy", "list reports",
                              "list kernels", "list cases --suite ./quick.suite"}) {
    const std::string text = shown("NO_COLOR=1", command);
    EXPECT_TRUE(has(text, "──")) << command << "\n" << text;
    EXPECT_LE(longest_line(text), 80u) << command << "\n" << text;
    EXPECT_FALSE(has(text, "\033")) << command;
    EXPECT_TRUE(has(shown("NO_COLOR=", command), "\033[")) << command;
  }
  const std::string latency = shown("NO_COLOR=1", "report latency");
  EXPECT_TRUE(has(latency, "case: topk_sort/experts=16,hidden=64,tokens=…,topk=2")) << latency;
  EXPECT_TRUE(has(latency, "…tokens=100…")) << latency;
  EXPECT_TRUE(has(shown("NO_COLOR=1", "report latency --format md"), "| case ")) << "asked for";
}

TEST_F(TerminalTest, APipeGetsTextWithoutColours) {
  ASSERT_EQ(moegate(run("--filter tokens=3,")).exit, 0);
  const Outcome piped = shell("env -u COLUMNS -u CLICOLOR_FORCE " + program() + " report latency");
  EXPECT_TRUE(has(piped.out, "──")) << piped.out;
  EXPECT_FALSE(has(piped.out, "\033")) << piped.out;
  EXPECT_GT(longest_line(piped.out), 80u) << piped.out;
  EXPECT_LE(longest_line(piped.out), 160u) << piped.out;
  const Outcome text = shell("COLUMNS=60 " + program() + " report latency --format text");
  EXPECT_FALSE(has(text.out, "\033")) << text.out;
  EXPECT_LE(longest_line(text.out), 60u) << text.out;
}

TEST_F(TerminalTest, AReportIsCutToWhatIsAskedFor) {
  ASSERT_EQ(moegate(run("--axis tokens=3,20,100")).exit, 0);
  const auto rows = [&](const std::string& flags) {
    const Outcome outcome = moegate("report " + flags + " --format csv");
    EXPECT_EQ(outcome.exit, 0) << flags << "\n" << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(rows("latency --variant ^fused$ --filter 'tokens=(3|20)(,|$)' --columns variant,CASE"),
            "variant,case\r\n"
            "fused,\"topk_sort/experts=16,hidden=64,tokens=3,topk=2\"\r\n"
            "fused,\"topk_sort/experts=16,hidden=64,tokens=20,topk=2\"\r\n");
  EXPECT_EQ(rows("speedup --filter tokens=20 --columns tokens,before,variant"),
            "tokens,before,variant\r\n20,chain,fused\r\n");
  EXPECT_EQ(rows("speedup --sort tokens:desc --columns tokens"), "tokens\r\n100\r\n20\r\n3\r\n");
  EXPECT_EQ(rows("speedup --sort tokens --columns variant,tokens"),
            "variant,tokens\r\nfused,3\r\nfused,20\r\nfused,100\r\n");
}

TEST_F(TerminalTest, AReportNamesTheColumnThatItLacks) {
  ASSERT_EQ(moegate(run("--filter tokens=3,")).exit, 0);
  const auto refused = [&](const std::string& flags, int exit, const std::string& part) {
    const Outcome outcome = moegate("report " + flags);
    EXPECT_EQ(outcome.exit, exit) << flags;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
    EXPECT_EQ(outcome.out, "") << flags;
  };
  refused("latency --columns case,varaint", 2,
          "--columns: there is no column 'varaint' (did you mean 'variant'?); the columns are: "
          "model, case");
  refused("latency --columns us,US", 2, "twice");
  refused("speedup --sort spedup:desc", 2, "did you mean 'Speedup'?");
  refused("runs --variant fused", 2, "--variant: there is no column 'variant'");
  refused("latency --filter '('", 2, "--filter");
  refused("latency --filter tokens=4,", 13, "none of its 2 rows matches --filter 'tokens=4,'");
}

TEST_F(TerminalTest, TheNearestStoreIsRead) {
  ASSERT_EQ(
      shell("mkdir out && " + program() + " " + run("--filter tokens=3, --db out/results.sqlite"))
          .exit,
      0);
  const Outcome night = moegate("list runs");
  EXPECT_EQ(night.exit, 0) << night.err;
  EXPECT_EQ(night.err, "store: out/results.sqlite (no results.sqlite here)\n");
  EXPECT_EQ(moegate("list suites").err, "") << "needs none";
  EXPECT_EQ(moegate("report runs --db out/results.sqlite").err, "");

  // A run makes a store of its own, which is the nearest from then on.
  ASSERT_EQ(moegate(run("--filter tokens=3, --label mine")).exit, 0);
  EXPECT_EQ(query("results.sqlite", "SELECT label FROM run"), "mine");
  EXPECT_EQ(query("out/results.sqlite", "SELECT count(*) FROM run"), "1");
  const Outcome own = moegate("report runs");
  EXPECT_TRUE(has(own.out, "mine")) << own.out;
  EXPECT_EQ(own.err, "");

  const std::string named = "MOEGATE_DB=out/results.sqlite " + program() + " ";
  const Outcome set = shell(named + "report runs");
  EXPECT_FALSE(has(set.out, "mine")) << set.out;
  EXPECT_EQ(set.err, "store: out/results.sqlite (MOEGATE_DB)\n");
  EXPECT_TRUE(has(shell(named + "report runs --db results.sqlite").out, "mine"));
  ASSERT_EQ(shell(named + run("--filter tokens=3, --label second")).exit, 0);
  EXPECT_EQ(query("out/results.sqlite", "SELECT count(*) FROM run"), "2");
  EXPECT_EQ(shell("MOEGATE_DB= " + program() + " report runs").err, "") << "empty is unset";
  EXPECT_EQ(moegate("report runs --db ''").exit, 2) << "typed, and no file";
}

TEST_F(TerminalTest, AMistypedNameIsAnsweredWithTheClosest) {
  ASSERT_EQ(moegate(run("--filter tokens=3, --label nightly-h200")).exit, 0);
  write("op.suite", "op = topk_srot\n[a]\ntokens = 1\n");
  write("param.suite", "op = topk_sort\nexperts = 8\ntopk = 2\nhiden = 8\n[a]\ntokens = 1\n");
  const std::pair<std::string, std::string> all[] = {
      {"reprot", "report"},
      {"run --suite smkoe --device host", "smoke"},
      {"run --suite ./op.suite --device host", "topk_sort"},
      {"run --suite ./param.suite --device host", "hidden"},
      {"run --suite ./quick.suite --device host --axis token=1", "tokens"},
      {"run --suite ./quick.suite --device host --variant '^fusde$'", "fused"},
      {"ab --suite ./quick.suite --device host --base variant=chian --head variant=fused", "chain"},
      {"report latncy", "latency"},
      {"report latency --run nightly-h20", "nightly-h200"},
      {"report latency --run lastest", "latest"},
      {"report latency --columns vairant", "variant"},
      {"list kernel", "kernels"},
      {"report latency --fromat csv", "--format"},
  };
  for (const auto& [typed, meant] : all) {
    const Outcome outcome = moegate(typed);
    EXPECT_NE(outcome.exit, 0) << typed;
    EXPECT_TRUE(has(outcome.err, "(did you mean '" + meant + "'?)")) << typed << "\n"
                                                                     << outcome.err;
  }
  EXPECT_FALSE(has(moegate("frobnicate").err, "did you mean"));
}

TEST_F(TerminalTest, ARunSaysBeforeItsFirstCaseHowLongItTakes) {
  const std::string tokens = "--axis tokens=1,2,3,4,5,6 ";
  const Outcome first = moegate(run(tokens));
  EXPECT_TRUE(
      first.err.starts_with("24 results to measure (12 rows x 2 rounds): likely 8 s (sampling"))
      << first.err;
  Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute(
          "UPDATE run SET started = '2026-01-01T00:00:00Z', finished = '2026-01-01T00:00:12Z'");
  const Outcome second = moegate(run(tokens));
  EXPECT_TRUE(has(second.err, "about 12 s (0.5 s each, as in an earlier run here)")) << second.err;
  const Outcome plan = moegate(run(tokens + "--dry-run"));
  EXPECT_TRUE(has(plan.err, "24 results to measure")) << plan.err;
}

TEST_F(TerminalTest, APlanForAGpuNeedsNone) {
  const std::string cuda = " --device cuda ";
  if (moegate("list devices").out.find("cuda:0") != std::string::npos) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  const std::string suite = "--suite ./quick.suite" + cuda;
  const Outcome cases = moegate("list cases " + suite);
  EXPECT_EQ(cases.exit, 0) << cases.err;
  EXPECT_TRUE(has(cases.out, "topk_sort/experts=16,hidden=64,tokens=20,topk=2")) << cases.out;
  EXPECT_TRUE(has(cases.err, "planned without a GPU")) << cases.err;
  EXPECT_EQ(moegate("list cases --axis token=1 " + suite).exit, 2) << "cases are checked";
  EXPECT_EQ(moegate("list cases --axis topk=99 " + suite).exit, 2) << "by their operator, too";
  // What a program has for a GPU it names, variants of the host it does not.
  const bool has_variants = has(moegate("list kernels --format csv").out, "topk_sort,chain3,cuda");
  const Outcome plan = moegate("run --dry-run " + suite);
  EXPECT_EQ(plan.exit, has_variants ? 0 : 13) << plan.err;
  EXPECT_EQ(has(plan.out, "tokens=20,topk=2 chain3\n"), has_variants) << plan.out;
  EXPECT_FALSE(has(plan.out, " chain\n")) << plan.out;
  EXPECT_EQ(moegate("run " + suite).exit, 21) << "to measure it takes one";
}

}  // namespace
}  // namespace moegate::test
