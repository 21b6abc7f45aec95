// SPDX-License-Identifier: Apache-2.0
// What binds baseline files to the ledger: hand edits, partial runs, retired rows and epochs.
#include <fstream>

#include "harness/base/test_fixture.h"
#include "harness/baseline/baseline.h"
#include "harness/baseline/creep.h"
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

class LedgerTest : public GateTest {
 protected:
  fs::path ledger() const { return dir_ / "baselines" / "blessings.tsv"; }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static void edit(const fs::path& path, const std::string& from, const std::string& to) {
    std::string text = read_file(path);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    write(path, text.replace(at, from.size(), to));
  }
  void refused(const std::string& why) {
    EXPECT_EQ(gate(), 2) << out_;
    EXPECT_TRUE(says(why)) << out_;
    EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  }
};

TEST_F(LedgerTest, AFileThatNobodyBlessedIsRefused) {
  bless_run(add_run());
  const std::string blessed = read_file(baseline());
  EXPECT_EQ(gate(), 0) << out_;
  for (const char* level : {"span_us=13", "span_us=10.01"}) {
    edit(baseline(), "span_us=10 ", std::string(level) + " ");
    refused("its SHA-256 is");
    write(baseline(), blessed);
  }
  edit(baseline(), "error=0.001", "error=9");
  refused("its SHA-256 is");
  write(baseline(), blessed);
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(LedgerTest, TheLastLineOfItsClassAndSuiteCounts) {
  bless_run(add_run());
  const std::string first = read_file(baseline());
  add_run([](Row& row, int) {
    row.result.span_ns *= 0.8;
    return true;
  });
  bless_run(2);
  write(baseline(), first);
  refused("B0002 blessed");
}

TEST_F(LedgerTest, ALedgerThatLacksTheFileIsRefused) {
  bless_run(add_run());
  const std::string lines = read_file(ledger());
  edit(ledger(), "\tnightly\t", "\tother\t");
  refused("has no line for class 'nvidia-h200', suite 'nightly'");
  fs::remove(ledger());
  EXPECT_EQ(gate(), 2) << out_;
  EXPECT_TRUE(says("no blessings.tsv beside it")) << out_;
}

TEST_F(LedgerTest, ALineWithoutHashSaysNothingOfAFile) {
  bless_run(add_run());
  const std::string lines = read_file(ledger()), hash = read_ledger(ledger()).at(0).sha256;
  ASSERT_EQ(hash.size(), 64u);
  write(ledger(), lines.substr(0, lines.find("\t" + hash)) + "\n");
  EXPECT_EQ(read_ledger(ledger()).at(0).sha256, "");
  refused("B0001 blessed no hash");
}

TEST_F(LedgerTest, ABrokenLineIsRefused) {
  const std::string whole = "B0001\ta\tb\tc\td\te\tf\tg\th\ti\tj";
  const auto refusal = [&](const std::string& text) {
    write(ledger(), text);
    return refusal_of([&] { read_ledger(ledger()); });
  };
  EXPECT_EQ(refusal(whole + "\n"), "accepted");
  EXPECT_NE(refusal(whole).find("blessings.tsv:1: the last line of the ledger has no line end"),
            std::string::npos);
  EXPECT_NE(
      refusal("#id\n" + whole.substr(0, whole.size() - 6) + "\n").find("2: this line has 8 fields"),
      std::string::npos);
  EXPECT_NE(refusal(whole + "\n" + whole.substr(0, whole.size() - 2) + "\n")
                .find("2: this line has 10 fields"),
            std::string::npos)
      << "an older line behind a newer one";
  EXPECT_NE(refusal(whole + "\tk\tl\n").find("has 13 fields"), std::string::npos);
  EXPECT_NE(refusal("B1x\t" + whole + "\n").find("B1x"), std::string::npos);
  EXPECT_NE(refusal("B0001\t2026-01-01\trecord\r\n").find("carriage return"), std::string::npos)
      << "bless would write another line";
  EXPECT_TRUE(read_ledger(dir_ / "none").empty());
}

TEST_F(LedgerTest, EveryLineStatesWhatStandsBeforeIt) {
  write(ledger(), "#of an older program\nB0001\ta\tb\tc\td\te\tf\tg\th\ti\tj\n");
  for (const char* id : {"B0002", "B0003"}) append_blessing(ledger(), {.id = id, .reason = "why"});
  const std::string lines = read_file(ledger());
  EXPECT_EQ(read_ledger(ledger()).size(), 3u);
  for (const auto& [from, to] : {std::pair{"older", "other"}, {"\tj\n", "\tk\n"}}) {
    edit(ledger(), from, to);
    const std::string why = refusal_of([&] { read_ledger(ledger()); });
    EXPECT_NE(why.find("blessings.tsv:3: an earlier line of the ledger has changed"),
              std::string::npos)
        << why;
    write(ledger(), lines);
  }
  const size_t second = lines.find("B0002"), third = lines.find("B0003");
  edit(ledger(), "B0002\t-\t-\t-\t-\t-\t-\t-\twhy", "B0002\t-\t-\t-\t-\t-\t-\t-\tno");
  EXPECT_NE(refusal_of([&] { read_ledger(ledger()); }).find("blessings.tsv:4:"), std::string::npos);
  write(ledger(),
        lines.substr(0, second) + lines.substr(third) + lines.substr(second, third - second));
  EXPECT_THROW(read_ledger(ledger()), Error) << "in another order";
  write(ledger(), lines + lines.substr(third));
  EXPECT_THROW(read_ledger(ledger()), Error) << "twice, as a merge of two branches has it";
}

TEST_F(LedgerTest, IdsThatRunOutAreRefusedRatherThanUnreadable) {
  append_blessing(ledger(), {.id = "B99999998"});
  EXPECT_EQ(next_blessing(ledger()), "B99999999");
  append_blessing(ledger(), {.id = "B99999999"});
  EXPECT_THROW(next_blessing(ledger()), Error);
}

TEST_F(LedgerTest, ARowThatSeesNothingIsNoBaseline) {
  add_run([](Row& row, int round) { return !is(row, "8", "fused") || round < 2; });
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  EXPECT_TRUE(says("topk_sort/tokens=8 fused: 2 processes")) << out_;
  add_run([](Row& row, int round) {
    if (is(row, "8", "fused") && round == 1) row.result.span_ns *= 1.6;
    return true;
  });
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  EXPECT_TRUE(says("1 of 4 measured rows are too noisy")) << out_;
}

TEST_F(LedgerTest, ABlindRowOfABaselineIsRefusedThoughItWasBlessed) {
  bless_run(add_run());
  Baseline b = read_baseline(baseline());
  for (const auto& [sd, n] : {std::pair{0.8, 3}, std::pair{0.001, 1}}) {
    b.rows.begin()->second.sd = sd;
    b.rows.begin()->second.n = n;
    write_baseline(baseline(), b);
    record_baseline();
    EXPECT_EQ(gate(), 2) << out_;
    EXPECT_TRUE(says("a row must spread by at most 20 %")) << out_;
  }
}

TEST_F(LedgerTest, ARowThatLeftIsRememberedWithItsAnchor) {
  bless_run(add_run());
  const auto without = [](Row& row, int) { return !is(row, "8", "fused"); };
  bless_run(add_run(without));
  EXPECT_NE(read_file(baseline()).find(" retired=1\n"), std::string::npos) << read_file(baseline());
  add_run(without);
  EXPECT_EQ(gate(), 0) << "a retired row is not missing: " << out_;
  EXPECT_TRUE(says("3 pass of 3 rows")) << out_;
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.span_ns *= 2.5;
    return true;
  });
  EXPECT_EQ(gate(), 10) << "it came back slower: " << out_;
  EXPECT_EQ(call(cmd_bless, {"--reason", "back"}), 2) << out_;
  EXPECT_TRUE(says("from its anchor 10,")) << out_;
  add_run();
  EXPECT_EQ(call(cmd_bless, {"--reason", "back"}), 0) << out_;
  EXPECT_EQ(read_file(baseline()).find("retired"), std::string::npos) << read_file(baseline());
}

Baseline twelve_rows(const std::string& gpu, double level) {
  Baseline b;
  b.header = {"nvidia-h200", "nightly", 1, "cupti", "read", gpu, "", "", Judged::span};
  for (int i = 0; i < 12; ++i) {
    BaselineRow row;
    row.level = row.anchor = level;
    row.n = 3;
    row.code = "c0de";
    b.rows[{"op/tokens=" + std::to_string(i), "fused"}] = row;
  }
  return b;
}

TEST(CarryAnchors, RowsOfUnchangedCodeSayWhatAnchorsAreWorth) {
  Baseline before = twelve_rows("GPU-1", 10), now = twelve_rows("GPU-2", 10.2);
  const std::pair<std::string, std::string> first{"op/tokens=0", "fused"};
  before.rows[first].anchor = 9.8;
  now.rows[first].code = "0ther";
  now.rows[first].level = 10.5;
  before.retired[{"op/tokens=99", "fused"}] = before.rows[first];
  now.retired = before.retired;
  ASSERT_TRUE(carry_anchors(before, now));
  EXPECT_NEAR(now.rows[first].anchor, 9.8 * 1.02, 1e-9);
  EXPECT_NEAR(now.rows.rbegin()->second.anchor, 10.2, 1e-9);
  EXPECT_NEAR(now.retired.begin()->second.level, 10.2, 1e-9);
  EXPECT_NE(beyond_anchor(now, CreepLimits::cuda()), "") << "5 % from its best";
}

TEST(CarryAnchors, TooFewRowsSayNothing) {
  const Baseline before = twelve_rows("GPU-1", 10);
  Baseline now = twelve_rows("GPU-2", 11);
  for (int i = 0; i < 3; ++i) now.rows[{"op/tokens=" + std::to_string(i), "fused"}].code = "0ther";
  EXPECT_FALSE(carry_anchors(before, now));
  Baseline host = twelve_rows("-", 0.5);
  host.header.judged = Judged::ratio;
  EXPECT_FALSE(carry_anchors(before, host));
}

TEST(CommittedBaselines, AreTheOnesThatTheLedgerStates) {
  const fs::path folder = fs::path(MOEGATE_SOURCE_DIR) / "baselines";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".tsv" || entry.path().parent_path() == folder) continue;
    if (entry.path().filename() == "resources.tsv")
      continue;  // of machine code: `ctest -R resources`
    const BaselineHeader header = read_baseline(entry.path()).header;
    EXPECT_NO_THROW(
        check_recorded(entry.path(), header.klass, header.suite, folder / "blessings.tsv"))
        << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
  int hashes = 0;
  for (const Blessing& b : read_ledger(folder / "blessings.tsv")) hashes += !b.sha256.empty();
  EXPECT_GE(hashes, files);
}

TEST_F(LedgerTest, APartialRunBecomesNoCandidate) {
  info_.options = R"({"filtered": true})";
  add_run();
  const std::string candidates = (dir_ / "cand").string();
  EXPECT_EQ(gate({"--candidate", candidates}), 0) << out_;
  EXPECT_TRUE(says("not recorded as candidate: the run measured only a part")) << out_;
  EXPECT_FALSE(fs::exists(dir_ / "cand"));
}

}  // namespace
}  // namespace moegate::test
