// SPDX-License-Identifier: Apache-2.0
// The ratchet of resources end to end, without a GPU: what the program has is blessed in a folder
// of the test, then the file is written as if something else had been.
#include <algorithm>
#include <sstream>
#include <vector>

#include "harness/base/hash.h"
#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class ResourcesTest : public ProgramTest {
 protected:
  void SetUp() override {
    const Outcome list = moegate("list resources --format csv");
    if (list.exit == 21) {
      EXPECT_NE(list.err.find("without CUDA"), std::string::npos) << list.err;
      GTEST_SKIP() << list.err;
    }
    ASSERT_EQ(list.exit, 0) << list.err;
    const Outcome blessed = resources("--bless --reason 'the test begins'");
    ASSERT_EQ(blessed.exit, 0) << blessed.err;
  }

  Outcome resources(const std::string& arguments) const {
    const size_t verb = arguments.find(' ');
    const std::string rest = verb == std::string::npos ? "" : arguments.substr(verb);
    if (arguments.starts_with("--check")) return moegate("gate --resources --baselines b" + rest);
    if (arguments.starts_with("--bless")) return moegate("bless --resources --baselines b" + rest);
    return moegate("list resources --baselines b " + arguments);
  }
  /// Lines of the file, three of which are its header.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::istringstream in(read(kFile));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  /// Makes them the file's, as if that had been blessed.
  void rewrite(const std::vector<std::string>& lines) const {
    std::string text, ledger = read("b/blessings.tsv");
    for (const std::string& line : lines) text += line + "\n";
    const size_t before = ledger.rfind('\t');
    ledger.replace(ledger.rfind('\t', before - 1) + 1, 64, sha256(text));
    write(kFile, text);
    write("b/blessings.tsv", ledger);
  }
  static std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    return fields;
  }
  /// Puts a value into a field (2 registers … 7 blocks per SM) of the first kernel whose blocks per
  /// SM are known, and returns its line as it was.
  std::vector<std::string> doctor(size_t field, const std::string& value) const {
    std::vector<std::string> all = lines();
    const auto line = std::find_if(all.begin() + 3, all.end(),
                                   [](const std::string& l) { return fields_of(l)[7] != "-"; });
    const std::vector<std::string> before = fields_of(*line);
    std::vector<std::string> now = before;
    now[field] = value;
    line->clear();
    for (const std::string& one : now) *line += (line->empty() ? "" : "\t") + one;
    rewrite(all);
    return before;
  }
  static void expect(const Outcome& outcome, int exit, const std::string& part) {
    EXPECT_EQ(outcome.exit, exit) << outcome.out << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find(part), std::string::npos)
        << "no '" << part << "' in: " << outcome.out << outcome.err;
  }

  static constexpr const char* kFile = "b/nvidia-h200/resources.tsv";
};

TEST_F(ResourcesTest, WhatWasBlessedPasses) {
  expect(resources("--check"), 0, "PASS");
  expect(resources("--check --variant '^kernels/topk_sort/'"), 0, "PASS");
  expect(resources("--check --variant no-such-kernel"), 13, "no-such-kernel");
  expect(resources("--bless --reason 'again'"), 0, "unchanged");
}

TEST_F(ResourcesTest, ALostBlockPerSmFails) {
  const std::string blocks = doctor(7, "31")[7];
  expect(resources("--check"), 10, "FAIL (exit 10): 1 worse");
  expect(resources("--check"), 10, "blocks per SM 31 -> " + blocks);
  expect(resources("--check"), 10, "bless --resources");
}

TEST_F(ResourcesTest, WhatGotBetterIsBlessed) {
  doctor(3, "4096");
  expect(resources("--check"), 13, "local memory 4096 -> ");
  expect(resources("--bless --reason 'it no longer spills'"), 0, "(ratchet)");
  expect(resources("--check"), 0, "PASS");
}

TEST_F(ResourcesTest, RegistersThatCostNoBlockPass) {
  doctor(2, "255");
  expect(resources("--check"), 0, "PASS");
}

TEST_F(ResourcesTest, NewAndVanishedKernelsAreNamed) {
  std::vector<std::string> all = lines();
  const std::string kernel = fields_of(all.back())[1];
  std::erase_if(
      all, [&](const std::string& line) { return line[0] != '#' && fields_of(line)[1] == kernel; });
  all.push_back("kernels/topk_sort/zz.cu\tvanished_kernel(int)\t8\t0\t0\t128\t0\t16");
  rewrite(all);
  expect(resources("--check"), 13, "1 new, 1 gone");
  expect(resources("--check"), 13, "gone: kernels/topk_sort/zz.cu vanished_kernel");
}

TEST_F(ResourcesTest, AnotherCompilerLeavesItOpen) {
  std::vector<std::string> all = lines();
  all[1] = "#class nvidia-h200  compiler 1.2.3";
  rewrite(all);
  expect(resources("--check"), 0, "1.2.3");
  doctor(7, "31");
  expect(resources("--check"), 20, "UNDECIDED");
}

TEST_F(ResourcesTest, ShapesComeFromAllRunsThatAreNamed) {
  const std::vector<std::string> all = lines();
  const auto unlaunched = std::find_if(all.begin() + 3, all.end(), [](const std::string& line) {
    return fields_of(line)[6] == "-" && fields_of(line)[5] != "-";
  });
  ASSERT_NE(unlaunched, all.end());
  const std::string kernel = fields_of(*unlaunched)[1];
  write("one.suite", "op = topk_sort\nexperts = 16\ntopk = 2\nhidden = 64\n[a]\ntokens = 3\n");
  for (int run = 0; run < 2; ++run) {
    const Outcome measured = moegate(
        "run --suite ./one.suite --device host --variant chain --db r.sqlite --min-samples 10 "
        "--max-samples 20");
    ASSERT_EQ(measured.exit, 0) << measured.err;
  }
  expect(resources("--bless --db r.sqlite --reason x"), 2, "not 'nvidia-h200'");
  Database((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE)
      .execute(
          "UPDATE device SET class = 'nvidia-h200';"
          "INSERT INTO kernel (result_id, ordinal, name, grid, block, cluster, registers,"
          " static_shared, dynamic_shared, ns, gap_ns, local_bytes)"
          " SELECT result_id, 0, '" +
          kernel +
          "', '1x1x1', (32 * run_id) || 'x1x1', '', 16, 0, 0, 1, 0, 0 FROM result JOIN process "
          "USING (process_id)");
  expect(resources("--bless --run 1,2 --db r.sqlite --reason 'as launched'"), 0, "(ratchet)");
  std::vector<std::string> threads;
  for (const std::string& line : lines())
    if (line[0] != '#' && fields_of(line)[1] == kernel) threads.push_back(fields_of(line)[5]);
  EXPECT_EQ(threads, (std::vector<std::string>{"32", "64"}));
}

TEST_F(ResourcesTest, AnEditByHandIsRefused) {
  write(kFile, read(kFile) + "kernels/a.cu\tmine\t8\t0\t0\t-\t-\t-\n");
  expect(resources("--check"), 2, "SHA-256");
}

TEST_F(ResourcesTest, TheJudgeReadsTheProgramBesideIt) {
  const auto judge = std::filesystem::path(program()).parent_path() / "moegate-judge";
  if (!std::filesystem::exists(judge)) GTEST_SKIP() << judge;
  expect(shell(judge.string() + " gate --resources --baselines b"), 0, "PASS");
}

class ResourcesInputTest : public ProgramTest {};

TEST_F(ResourcesInputTest, EveryMistakeIsNamed) {
  const auto expect = [&](const std::string& arguments, int exit, const std::string& part) {
    const Outcome outcome = moegate("list resources " + arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  write("not-a-program", "#!/bin/sh\n");
  expect("--program not-a-program", 2, "not-a-program: this is not a whole program");
  expect("--program none", 2, "none");
  expect("--program /bin/true", 21, "without CUDA");
  expect("--module mine.py", 2, "Python");
  expect("--class nvidia-v100", 2, "nvidia-v100");
  expect("--class nvidia-a100", 21, "holds no machine code of kernels for sm_80");
  EXPECT_EQ(moegate("gate --resources --format csv").exit, 2);
  EXPECT_EQ(moegate("bless --resources --accept dirty").exit, 2);
  EXPECT_EQ(moegate("gate --class nvidia-h200").exit, 2) << "goes with --resources";
}

}  // namespace
}  // namespace moegate::test
