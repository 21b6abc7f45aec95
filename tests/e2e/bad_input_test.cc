// SPDX-License-Identifier: Apache-2.0
// Bad input gets one clear line that names the thing, the value and the remedy, the documented exit
// code, and loses nothing.
#include <algorithm>
#include <sstream>

#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class BadInputTest : public ProgramTest {
 protected:
  /// Expects the exit code, and that the error is one line that holds every one of the words.
  void expect(const std::string& arguments, int exit, std::vector<std::string> words) const {
    const Outcome outcome = moegate(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.err;
    const std::string line = outcome.err.substr(0, outcome.err.find('\n'));
    EXPECT_EQ(outcome.err, line + "\n") << "not one line: " << outcome.err;
    for (const std::string& word : words) {
      EXPECT_NE(line.find(word), std::string::npos) << "'" << word << "' missing in: " << line;
    }
  }
};

TEST_F(BadInputTest, CommandAndFlags) {
  expect("frobnicate", 2, {"frobnicate", "--help"});
  expect("worker 3>&- 4>&-", 2, {"worker", "not by hand"});
  expect("run --suit tiny", 2, {"--suit", "--help"});
  expect("run", 2, {"--suite", "list suites"});
  expect("run --suite tiny --rounds 0", 2, {"--rounds", "0"});
  expect("run --suite tiny --budget soon", 2, {"--budget", "soon", "500ms"});
  expect("run --suite tiny --shard 3/2", 2, {"--shard", "3/2"});
  expect("run --suite tiny --filter '('", 2, {"--filter", "("});
  expect("verify --suite tiny --filter none --sample-seed -1", 2, {"--sample-seed '-1'", "0"});
  expect("verify --suite tiny --filter none --sample-seed 1.5", 2, {"--sample-seed '1.5'"});
  expect("report latency accuracy", 2, {"only NAME may stand without a flag"});
  expect("gate --run 2 --run 3", 2, {"'--run' cannot be specified more than once"});
  expect("compare 1 2", 2, {"moegate gate --against BASE --run HEAD"});
  expect("run --suite tiny --kernel chain", 2, {"--variant RE"});
  expect("ab --base-program x --suite tiny", 2, {"--base program=PATH"});
  expect("run --suite tiny --flush wash", 2, {"--flush", "wash", "read"});
  expect("run --suite tiny --axis tokens", 2, {"--axis", "tokens"});
  expect("report accuracy --chart x.svg", 2, {"has no chart; add the", "accuracy.vg.json"});
  expect("list things", 2, {"things", "suites"});
  expect("list suites --format xml", 2, {"xml", "md"});
  expect("list kernels --suite tiny", 2, {"--suite", "list cases"});
  expect("list kernels --variant '('", 2, {"--variant", "("});
  expect("run --suite tiny --rounds three", 2, {"moegate: run: ", "three", "--rounds"});
  expect("gate --baseline b", 2, {"--baselines PATH"});
  expect("new", 2, {"operator, variant or suite"});
}

TEST_F(BadInputTest, NothingIsQuotedThatWasNotTyped) {
  for (const char* line : {"list", "store", "selftest --suite tiny", "new",
                           "verify --suite tiny --device host --variant no-such",
                           "verify --suite tiny --device host --filter no-such"}) {
    const Outcome outcome = moegate(line);
    EXPECT_NE(outcome.exit, 0) << line;
    EXPECT_EQ(outcome.err.find("''"), std::string::npos) << outcome.err;
  }
  expect("list", 2, {"list what?", "suites"});
}

TEST_F(BadInputTest, ATimeHasAUnit) {
  expect("run --suite tiny --budget 5", 2, {"--budget '5' has no unit", "5s", "5min"});
  expect("nightly --budget 2parsecs", 2, {"--budget", "2parsecs", "1.5min"});
  const Outcome minutes = moegate("run --suite tiny --device host --budget 2m --dry-run");
  EXPECT_EQ(minutes.exit, 0) << minutes.err;
}

TEST_F(BadInputTest, SuitesAndParameters) {
  expect("verify --suite nowhere", 2, {"nowhere", "list suites"});
  write("op.suite", "op = topk_srot\n[a]\ntokens = 1\n");
  expect("verify --suite ./op.suite", 2, {"op.suite", "topk_srot", "topk_sort", "--module"});
  write("line.suite", "op = topk_sort\n[a]\nwhat is this\n");
  expect("verify --suite ./line.suite", 2, {"line.suite", "3"});
  const std::string rest = "experts = 8\ntopk = 2\nhidden = 8\n[a]\n";
  write("param.suite", "op = topk_sort\ntokens = 1\nhiden = 8\n" + rest);
  expect("verify --suite ./param.suite", 2, {"param.suite", "hiden"});
  write("missing.suite", "op = topk_sort\n" + rest);
  expect("verify --suite ./missing.suite", 2, {"missing.suite", "tokens"});
  write("value.suite", "op = topk_sort\ntokens = many\n" + rest);
  expect("verify --device host --suite ./value.suite", 2, {"value.suite", "[a]", "tokens", "many"});
  write("range.suite", "op = topk_sort\ntokens = 1\nscoring = noaux_tc\ngroups = 3\n" + rest);
  expect("verify --device host --suite ./range.suite", 2, {"groups", "3", "8"});
  write("routing.suite", "op = topk_sort\ntokens = 1\nrouting = replay:none.npy\n" + rest);
  expect("verify --device host --suite ./routing.suite", 2, {"none.npy"});
}

TEST_F(BadInputTest, CommonParameters) {
  expect("verify --suite tiny --device host --seed x", 2, {"seed", "x"});
  expect("run --suite tiny --device host --cache lukewarm", 2,
         {"cache", "lukewarm", "cold-weights"});
  expect("run --suite tiny --device host --launch rocket", 2, {"launch", "rocket", "graph"});
}

TEST_F(BadInputTest, DevicesAndSelections) {
  expect("verify --suite tiny --device tpu", 2, {"tpu", "host", "cuda"});
  expect("verify --suite tiny --device host --filter no-such-case", 13,
         {"no-such-case", "list cases"});
  expect("verify --suite tiny --device host --variant no-such", 13,
         {"no variant of tiny", "--variant 'no-such'", "list kernels"});
  expect("verify --suite tiny --device host --variant chian", 13, {"did you mean 'chain'"});
  expect("ab --suite tiny --device host --base variant=chain --head variant=fsued", 13,
         {"--variant 'fsued' (did you mean 'fused'?)", "list kernels"});
  const Outcome filtered =
      moegate("verify --suite tiny --device host --filter no-such --variant '^chain$'");
  EXPECT_EQ(filtered.exit, 13);
  EXPECT_EQ(filtered.err.find("did you mean"), std::string::npos) << filtered.err;
}

TEST_F(BadInputTest, StoresAreLeftAlone) {
  expect("report latency --db none.sqlite", 30, {"none.sqlite", "moegate run"});
  expect("report --db none.sqlite", 30, {"none.sqlite"});
  expect("report history --db none.sqlite", 2, {"--filter RE", "report latency"});
  expect("store merge out.sqlite none.sqlite", 30, {"none.sqlite", "leave it out"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.sqlite"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.sqlite"));
  write("notes.txt", "these are my notes, not a database, and long enough to be looked at\n");
  expect("run --suite tiny --device host --db notes.txt", 30, {"notes.txt"});
  EXPECT_EQ(read("notes.txt"),
            "these are my notes, not a database, and long enough to be looked at\n");
  expect("run --suite tiny --device host --db no/such/folder/r.sqlite", 30, {"no/such/folder"});
}

TEST_F(BadInputTest, HelpIsForEveryCommand) {
  for (const char* command :
       {"run", "verify", "profile", "ab", "nightly", "gate", "bless", "report", "pages", "tune",
        "bisect", "selftest", "list", "doctor", "new", "store"}) {
    const std::string usage = std::string("usage: moegate ") + command;
    const Outcome all = moegate(std::string(command) + " --help");
    EXPECT_EQ(all.exit, 0) << command;
    EXPECT_NE(all.out.find(usage), std::string::npos) << all.out;
    EXPECT_EQ(all.err, "") << command;
    EXPECT_EQ(moegate(std::string("help ") + command).out, all.out);
    const Outcome screen = moegate(std::string(command) + " -h");
    EXPECT_EQ(screen.exit, 0) << command;
    EXPECT_NE(screen.out.find(usage), std::string::npos) << screen.out;
    EXPECT_NE(screen.out.find(std::string("\n  moegate ") + command), std::string::npos)
        << "an example" << screen.out;
    EXPECT_LE(std::ranges::count(screen.out, '\n'), 24) << "one screen" << screen.out;
    std::istringstream lines(screen.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
  EXPECT_EQ(moegate("help").out, moegate("--help").out);
  EXPECT_NE(moegate("help compare").err.find("gate --against"), std::string::npos);
}

}  // namespace
}  // namespace moegate::test
