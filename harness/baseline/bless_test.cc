// SPDX-License-Identifier: Apache-2.0
// What moegate bless writes and refuses, on synthetic stores.
#include "harness/baseline/bless.h"

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/judge/gate.h"
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

TEST_F(GateTest, BlessWritesFileAndLedgerAndOnlyWhatMoved) {
  add_run();
  EXPECT_EQ(call(cmd_bless, {"--reason", "start"}), 0) << out_;
  const std::string first = read_file(baseline());
  EXPECT_EQ(first.rfind(
                "#moegate-baseline 1\n#class nvidia-h200  suite nightly  protocol 1  timer cupti  "
                "flush read  gpu GPU-1  judged span  commit abc123\n"
                "topk_sort/tokens=8 chain\n\tspan_us=10 sd=0.2% n=3 error=0.001 det=1 by=B0001\n",
                0),
            0u)
      << first;
  const fs::path ledger = dir_ / "baselines" / "blessings.tsv";
  EXPECT_NE(read_file(ledger).find("\tnvidia-h200\tnightly\trun 1 'night'\tabc123\tstart\t-\t"),
            std::string::npos);

  add_run();
  EXPECT_EQ(call(cmd_bless, {"--reason", "again"}), 0) << out_;
  EXPECT_TRUE(says("nothing moved")) << out_;
  EXPECT_EQ(read_file(baseline()), first);
  EXPECT_EQ(read_file(ledger).find("again"), std::string::npos);

  add_run([](Row& row, int) {
    if (is(row, "16", "fused")) row.result.span_ns *= 0.8;
    return true;
  });
  EXPECT_EQ(call(cmd_bless, {"--reason", "faster"}), 0) << out_;
  EXPECT_TRUE(says("topk_sort/tokens=16 fused: 10 -> 8 us (-20.0 %)")) << out_;
  EXPECT_NE(read_file(baseline()).find("span_us=8 sd=0.2% n=3 error=0.001 det=1 by=B0002"),
            std::string::npos);
  EXPECT_NE(read_file(ledger).find("\nB0002\t"), std::string::npos);
}

std::function<bool(Row&, int)> slower(double factor) {
  return [factor](Row& row, int) {
    if (row.variant == "fused") row.result.span_ns *= factor;
    return true;
  };
}

TEST_F(GateTest, ManySmallLossesAreRefusedUntilAccepted) {
  bless_run(add_run());
  add_run(slower(1.015));  // geomean + 0.75 %
  EXPECT_EQ(call(cmd_bless, {"--reason", "1.5 %"}), 0) << out_;
  EXPECT_NE(read_file(baseline())
                .find("span_us=10.15 sd=0.2% n=3 error=0.001 det=1 by=B0002 "
                      "anchor=10\n"),
            std::string::npos)
      << read_file(baseline());
  const std::string before = read_file(baseline());
  add_run(slower(1.025));  // no row beyond 3 %, the suite beyond 1 %
  EXPECT_EQ(call(cmd_bless, {"--reason", "more"}), 2) << out_;
  EXPECT_TRUE(says("the geometric mean of suite 'nightly' is +1.2 %")) << out_;
  add_run(slower(1.035));
  EXPECT_EQ(call(cmd_bless, {"--reason", "more"}), 2) << out_;
  EXPECT_TRUE(says("topk_sort/tokens=8 fused: 10.35 is +3.5 % from its anchor 10,")) << out_;
  EXPECT_TRUE(says("--accept creep")) << out_;
  EXPECT_EQ(read_file(baseline()), before) << "a refusal changes nothing";
  EXPECT_EQ(call(cmd_bless, {"--reason", "worth it", "--accept", "creep"}), 0) << out_;
  EXPECT_EQ(read_file(baseline()).find("anchor="), std::string::npos) << read_file(baseline());
  EXPECT_NE(read_file(dir_ / "baselines" / "blessings.tsv").find("\taccept_regression\t"),
            std::string::npos);
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(GateTest, ARefusedSuiteLeavesTheOthersAlone) {
  const auto add_suites = [&](double a, double b) {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info_);
    for (int round = 0; round < 3; ++round) {
      const int64_t process = store.begin_process(run, round, 100 + round);
      for (const auto& [suite, span_ns] : {std::pair{"a", a}, std::pair{"b", b}}) {
        Result r;
        r.variant = "fused";
        r.timer = info_.timer;
        r.judged = Judged::span;
        r.tick_ns = 32;
        r.samples = 100;
        r.span_ns = span_ns;
        r.accuracy = {accuracy(1e-3)};
        store.add_result(process, {suite, "m", "topk_sort", {{"tokens", suite}}, {}}, {1, 2, 3}, {},
                         r);
      }
      store.end_process(process, "");
    }
    store.end_run(run, "complete");
  };
  const fs::path first = baseline().parent_path() / "a.tsv";
  add_suites(10000, 10000);
  EXPECT_EQ(call(cmd_bless, {"--reason", "first"}), 0) << out_;
  const std::string before = read_file(first);
  add_suites(8000, 11000);
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  EXPECT_EQ(read_file(first), before);
  EXPECT_EQ(call(cmd_bless, {"--reason", "x", "--accept", "creep"}), 0) << out_;
  EXPECT_TRUE(says("changed by B0003 (ratchet)")) << out_;
  EXPECT_TRUE(says("changed by B0004 (accept_regression)")) << out_;
}

TEST_F(GateTest, CreepFailsWhatPassesAgainstTheBaseline) {
  bless_run(add_run());
  add_run(slower(1.018));
  bless_run(2);
  add_run(slower(1.0375));  // 1.9 % above the baseline
  EXPECT_EQ(gate(), 10) << out_;
  EXPECT_TRUE(says("creep: at least")) << out_;
  EXPECT_TRUE(says("2 regressed")) << out_;
}

TEST_F(GateTest, OtherConditionsNeedAnEpoch) {
  bless_run(add_run());
  info_.flush = "write";
  add_run(slower(1.5));
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2);
  EXPECT_TRUE(says("flush is 'read', the run's is 'write'")) << out_;
  EXPECT_TRUE(says("--accept conditions")) << out_;
  EXPECT_EQ(call(cmd_bless, {"--reason", "x", "--accept", "conditions"}), 2);
  EXPECT_TRUE(says("its anchors cannot be kept")) << out_;
  EXPECT_EQ(call(cmd_bless, {"--reason", "x", "--accept", "conditions,creep"}), 0) << out_;
  EXPECT_NE(read_file(dir_ / "baselines" / "blessings.tsv").find("\tepoch\t"), std::string::npos);
  EXPECT_EQ(read_file(baseline()).find("anchor="), std::string::npos) << "anchors are forgotten";
  EXPECT_EQ(gate(), 0) << out_;
  info_.device.uuid = "GPU-2";  // of the same class
  add_run();
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2);
  EXPECT_TRUE(says("gpu is 'GPU-1', the run's is 'GPU-2'")) << out_;
}

TEST_F(GateTest, BlessRefuses) {
  const auto refused = [&](const Args& args, const std::string& why) {
    EXPECT_EQ(call(cmd_bless, args), 2);
    EXPECT_TRUE(says(why)) << out_;
    EXPECT_FALSE(fs::exists(baseline()));
    EXPECT_FALSE(fs::exists(dir_ / "baselines" / "blessings.tsv"));
  };
  add_run();
  refused({}, "--reason");
  refused({"--reason", " \n"}, "--reason");
  info_.dirty = true;
  add_run();
  refused({"--reason", "x"}, "uncommitted");
  EXPECT_EQ(
      call(cmd_bless, {"--reason", "x", "--accept", "dirty", "--baselines", (dir_ / "b").string()}),
      0)
      << out_;
  EXPECT_EQ(read_file(dir_ / "b" / "nvidia-h200" / "nightly.tsv").find("commit"), std::string::npos)
      << "it is not that commit's";
  info_.dirty = false;
  add_run({}, "interrupted");
  refused({"--reason", "x"}, "--resume 3");
  info_.options = R"({"filtered": true})";
  add_run();
  refused({"--reason", "x"}, "part of its suites");
  info_.options = "{}";
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::wrong;
    return true;
  });
  refused({"--reason", "x"}, "wrong topk_sort/tokens=8 fused");
}

TEST_F(GateTest, NoBlessingIsSuggestedThatWouldBeRefused) {
  add_run();
  gate();
  EXPECT_TRUE(says("To bless: `moegate bless --db ")) << out_;
  info_.dirty = true;
  add_run();
  gate();
  EXPECT_TRUE(says(" --run 2 --accept dirty --reason ")) << out_;
  info_.dirty = false;
  info_.options = R"({"filtered": true})";
  add_run();
  gate();
  EXPECT_FALSE(says("moegate bless")) << out_;
  info_.options = "{}";
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::wrong;
    return true;
  });
  gate();
  EXPECT_FALSE(says("moegate bless")) << out_;
}

TEST_F(GateTest, ABlessingThatWasKilledBeforeItsLedgerIsRefusedUntilTheFileIsRestored) {
  bless_run(add_run());
  const fs::path ledger = dir_ / "baselines" / "blessings.tsv";
  const std::string rows = read_file(baseline()), lines = read_file(ledger);
  add_run(slower(0.8));
  bless_run(2);
  const std::string recorded = read_file(baseline());
  std::ofstream(ledger) << lines;
  EXPECT_EQ(gate(), 2) << out_;
  EXPECT_EQ(call(cmd_bless, {"--reason", "again"}), 2) << out_;
  EXPECT_TRUE(says("restore the file")) << out_;
  std::ofstream(baseline()) << rows;
  bless_run(2);
  EXPECT_EQ(read_file(baseline()), recorded);
  EXPECT_NE(read_file(ledger).find("\nB0002\t"), std::string::npos);
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(GateTest, ADiskThatIsFullBlessesNothing) {
  bless_run(add_run());
  const fs::path ledger = dir_ / "baselines" / "blessings.tsv";
  // So that there are sizes at which the baseline fits and the ledger does not.
  append_to_file(ledger, "# " + std::string(2000, '-') + "\n");
  const std::string rows = read_file(baseline()), lines = read_file(ledger);
  const int64_t faster = add_run(slower(0.8));
  const auto bless_again = [&] {
    return call(cmd_bless, {"--run", std::to_string(faster), "--reason", "again"});
  };
  int refused = 0;
  for (rlim_t bytes = 0;; bytes += 67) {
    int code = 0;
    {
      const FileLimit limit(bytes);
      code = bless_again();
    }
    if (code == 0) break;
    ++refused;
    EXPECT_EQ(code, 2) << out_;
    EXPECT_TRUE(says("cannot be written")) << out_;
    EXPECT_EQ(read_file(baseline()), rows) << bytes;
    EXPECT_EQ(read_file(ledger), lines) << bytes;
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 30);
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(GateTest, AFirstBlessingThatFailsLeavesNoFile) {
  add_run();
  append_to_file(dir_ / "baselines" / "blessings.tsv", "# " + std::string(2000, '-') + "\n");
  {
    const FileLimit limit(2010);  // the baseline fits, the ledger does not
    EXPECT_EQ(call(cmd_bless, {"--reason", "first"}), 2) << out_;
  }
  EXPECT_TRUE(says("blessings.tsv: cannot be written")) << out_;
  EXPECT_FALSE(fs::exists(baseline()));
  EXPECT_EQ(call(cmd_bless, {"--reason", "first"}), 0) << out_;
}

}  // namespace
}  // namespace moegate::test
