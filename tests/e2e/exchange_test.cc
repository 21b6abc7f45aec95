// SPDX-License-Identifier: Apache-2.0
// Traces of FlashInfer-Bench out of a store and back into a suite.
#include <algorithm>
#include <sstream>

#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class ExchangeTest : public ProgramTest {
 protected:
  /// The cases of a suite, a line each, sorted.
  std::string cases(const std::string& suite) const {
    const Outcome outcome = moegate("list cases --device host --format csv --suite " + suite);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    std::istringstream in(outcome.out);
    std::vector<std::string> keys;
    for (std::string line; std::getline(in, line);) {
      const size_t start = line.find('"'), end = line.rfind('"');
      if (start != end) keys.push_back(line.substr(start + 1, end - start - 1));
    }
    std::ranges::sort(keys);
    std::string text;
    for (const std::string& key : keys) text += key + "\n";
    return text;
  }

  /// The client of the store, by the Python that CI sets up.
  Outcome flashinfer(const std::string& arguments) const {
    return shell("PYTHONPATH='" MOEGATE_SOURCE_DIR
                 "/python' /usr/bin/python3 -B -m moegate.flashinfer " +
                 arguments);
  }

  void expect_refused(const std::string& arguments, int exit, const std::string& what) const {
    const Outcome outcome = flashinfer(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << arguments << "\n" << outcome.err;
  }
};

TEST_F(ExchangeTest, WhatIsExportedIsImportedAsTheSameCases) {
  write("quick.suite",
        "op = topk_sort\nexperts = 16\nhidden = 64\n"
        "[small]\ntokens = 3, 20\ntopk = 2\nrouting = uniform, zipf:0.67\n"
        "[scaled]\ntokens = 3\ntopk = 4\nscale = 2.5\nseed = 7\n");
  const std::string run =
      "run --suite ./quick.suite --device host --min-samples 10 --max-samples 20 --budget 100ms "
      "--rounds 1 --variant 'chain|fused'";
  ASSERT_EQ(moegate(run).exit, 0);
  Outcome outcome = flashinfer("export flashinfer-trace --out -");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(std::to_string(std::ranges::count(outcome.out, '\n')),
            query("results.sqlite", "SELECT count(*) FROM result"));
  EXPECT_EQ(outcome.out.find("{\"definition\":\"moegate.topk_sort,"), 0u) << outcome.out;
  EXPECT_NE(outcome.err.find("no place for"), std::string::npos) << outcome.err;
  outcome = flashinfer("export flashinfer-trace --run 1 --out set/");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "set/traces/topk-sort"));
  outcome = flashinfer("import flashinfer-trace set --out back --name again");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 cases, 0 recorded routings"), std::string::npos) << outcome.out;
  EXPECT_EQ(cases("./back/again.suite"), cases("./quick.suite"));
}

TEST_F(ExchangeTest, TracesBecomeASuiteThatRuns) {
  const Outcome outcome = flashinfer("import flashinfer-trace " MOEGATE_SOURCE_DIR
                                     "/tests/traces/flashinfer --out imported");
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("23 cases, 2 recorded routings"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("not used: "), std::string::npos) << outcome.out;
  const Outcome verified =
      moegate("verify --suite ./imported/flashinfer-trace.suite --device host --filter replay");
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
}

TEST_F(ExchangeTest, WhatCannotBeExchangedIsNamed) {
  for (const std::string command : {"export", "import"}) {
    const std::string name = "python3 -m moegate.flashinfer " + command;
    EXPECT_NE(flashinfer(command + " --help").out.find("usage: " + name), std::string::npos);
    const Outcome old = moegate(command + " --help");
    EXPECT_EQ(old.exit, 2);
    EXPECT_NE(old.err.find("`" + name + "`"), std::string::npos) << old.err;
  }
  expect_refused("export csv --out x", 2, "flashinfer-trace");
  expect_refused("export flashinfer-trace", 2, "--out");
  expect_refused("export flashinfer-trace --out no/such/folder", 2, "no/such/folder");
  expect_refused("export flashinfer-trace --out x", 30, "results.sqlite");
  expect_refused("import flashinfer-trace", 2, "folder of the data set");
  expect_refused("import flashinfer-trace nowhere --out x", 2, "nowhere");
  expect_refused("import flashinfer-trace . --out x --name a/b", 2, "a/b");
  expect_refused("import flashinfer-trace . --out x", 13, "no workload");
  write("bad.jsonl", "\n{\"definition\":");
  expect_refused("import flashinfer-trace bad.jsonl --out x", 2, "bad.jsonl:2");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

}  // namespace
}  // namespace moegate::test
