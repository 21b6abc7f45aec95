// SPDX-License-Identifier: Apache-2.0
// The gate on synthetic stores: every outcome with its exit code.
#include "harness/judge/gate.h"

#include <nlohmann/json.hpp>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

TEST_F(GateTest, AnUnchangedRunPasses) {
  bless_run(add_run());
  add_run();
  EXPECT_EQ(gate({"--out", (dir_ / "v.json").string(), "--out", (dir_ / "r.md").string()}), 0)
      << out_;
  EXPECT_EQ(out_.rfind("**PASS: 0 inconclusive, 4 pass of 4 rows", 0), 0u) << out_;
  EXPECT_TRUE(says("sw_power_cap in 1 of 3 processes")) << out_;
  EXPECT_TRUE(says("To repeat: `moegate run --suite nightly`")) << out_;
  EXPECT_EQ(read_file(dir_ / "r.md"), out_);
  const auto v = nlohmann::json::parse(read_file(dir_ / "v.json"));
  EXPECT_EQ(v["schema"], 1);
  EXPECT_EQ(v["exit"], 0);
  EXPECT_EQ(v["cases"].size(), 4u);
  EXPECT_EQ(v["counts"]["pass"], 4);
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(store.database().integer(
                "SELECT count(*) FROM verdict WHERE run_id = 2 AND outcome = 'pass'"),
            4);
}

TEST_F(GateTest, ARunOfAnotherProtocolIsNotJudged) {
  bless_run(add_run());
  info_.protocol = 2;
  add_run();
  EXPECT_EQ(gate(), 2) << out_;
  EXPECT_TRUE(says("protocol is '1', the run's is '2'; bless a run of this protocol first"))
      << out_;
}

TEST_F(GateTest, ASlowerCaseFails) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "16", "fused")) row.result.span_ns *= 1.05;
    if (is(row, "8", "fused")) row.result.span_ns *= 0.9;
    return true;
  });
  EXPECT_EQ(gate(), 10) << out_;
  EXPECT_TRUE(says("FAIL (exit 10): 1 regressed, 1 improved, 0 inconclusive, 2 pass of 4 rows"))
      << out_;
  EXPECT_TRUE(says("+5.0 %")) << out_;
  EXPECT_TRUE(says("moegate bless --db")) << out_;
  EXPECT_EQ(gate({"--fail-on", "accuracy,coverage"}), 0) << out_;
  EXPECT_EQ(gate({"--margin", "8%", "--fail-at", "10%"}), 0) << out_;
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(store.database().integer("SELECT count(*) FROM verdict"), 4)
      << "judged again, replaced";
}

TEST_F(GateTest, AWrongOutputFailsAlwaysEvenWithoutBaseline) {
  add_run([](Row& row, int round) {
    if (is(row, "8", "fused") && round == 1) {
      row.result.status = Status::wrong;
      row.result.why = "weights[3] is 2, should be 1 | pipe";
    }
    return true;
  });
  EXPECT_EQ(gate(), 11) << out_;
  EXPECT_TRUE(says("wrong in 1 of 3 processes: weights[3] is 2, should be 1 \\| pipe")) << out_;
  EXPECT_EQ(gate({"--fail-on", "latency"}), 11) << out_;
}

TEST_F(GateTest, SlowerAndWrongIsBoth) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::wrong;
    if (is(row, "16", "fused")) row.result.span_ns *= 1.2;
    return true;
  });
  EXPECT_EQ(gate(), 12) << out_;
}

TEST_F(GateTest, AGrownErrorFails) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.accuracy = {accuracy(4.5e-3)};
    return true;
  });
  EXPECT_EQ(gate(), 11) << out_;
  EXPECT_TRUE(says("error 0.0045 against 0.001")) << out_;
  EXPECT_EQ(gate({"--fail-on", "latency"}), 0) << out_;
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.accuracy = {accuracy(3.9e-3)};
    return true;
  });
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("1 inconclusive, 3 pass")) << "on other inputs it may be\n" << out_;
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.accuracy = {accuracy(NAN)};
    return true;
  });
  EXPECT_EQ(gate(), 11) << "an error that is not finite";
}

TEST_F(GateTest, OutputsAreComparedSeedBySeed) {
  const auto with = [](uint64_t hash, double error) {
    return [=](Row& row, int) {
      row.result.seeds = {{1, hash, error, error, 0}, {2, hash + 1, error, error, 0}};
      return true;
    };
  };
  bless_run(add_run(with(10, 1e-3)));
  add_run(with(10, 1e-3));
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "2"}), 0) << out_;
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(store.database().integer(
                "SELECT count(*) FROM verdict WHERE why LIKE '%; output bit-identical'"),
            4);
  EXPECT_FALSE(says("in the last bits")) << out_;
  add_run(with(20, 1e-3));
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "3"}), 0) << out_;
  EXPECT_TRUE(says("outputs of 4 rows changed in the last bits, none is less accurate")) << out_;
  add_run(with(20, 1.5e-3));
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "4"}), 11) << out_;
  EXPECT_FALSE(says("in the last bits")) << out_;
  EXPECT_TRUE(says("+0.58 bits on average, worse on 2 of 2 seeds")) << out_;
  EXPECT_EQ(gate(), 0) << "a baseline file has one error number: two bits\n" << out_;
}

TEST_F(GateTest, TinyErrorsMayGrow) {
  const auto with = [](double error) {
    return [error](Row& row, int) {
      row.result.accuracy = {accuracy(error)};
      return true;
    };
  };
  bless_run(add_run(with(1e-9)));
  add_run(with(9e-7));
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(GateTest, LostDeterminismFails) {
  bless_run(add_run());
  add_run([](Row& row, int round) {
    row.result.deterministic = !(is(row, "8", "chain") && round == 2);
    return true;
  });
  EXPECT_EQ(gate(), 11) << out_;
  EXPECT_TRUE(says("differ between launches")) << out_;
}

TEST_F(GateTest, ACrashOrAMissingCaseIsACoverageFailure) {
  bless_run(add_run());
  add_run([](Row& row, int round) {
    if (is(row, "8", "fused") && round == 2) {
      row.result = {};
      row.result.variant = "fused";
      row.result.status = Status::crashed;
      row.result.why = "signal 11";
    }
    return !is(row, "16", "fused");
  });
  EXPECT_EQ(gate(), 13) << out_;
  EXPECT_TRUE(says("2 missing")) << out_;
  EXPECT_TRUE(says("crashed in 1 of 3 processes: signal 11")) << out_;
  EXPECT_TRUE(says("in the baseline, not in the run")) << out_;
}

TEST_F(GateTest, AVariantThatNoLongerSupportsACaseIsMissing) {
  const auto unsupported = [](Row& row, int) {
    if (is(row, "8", "fused")) {
      row.result = {};
      row.result.variant = "fused";
      row.result.status = Status::unsupported;
    }
    return true;
  };
  const int64_t run = add_run();
  add_run(unsupported);
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("1 unsupported")) << out_;
  bless_run(run);
  EXPECT_EQ(gate(), 13) << out_;
}

TEST_F(GateTest, WhatAFilteredOrInterruptedRunLacksIsNotMissing) {
  bless_run(add_run());
  const auto half = [](Row& row, int) { return row.tokens == "8"; };
  info_.options = R"({"filtered": true})";
  add_run(half);
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("2 of the baseline not run")) << out_;
  info_.options = "{}";
  add_run(half, "interrupted");
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("**interrupted**")) << out_;
}

TEST_F(GateTest, ARunWithoutResultsIsACoverageFailure) {
  add_run([](Row&, int) { return false; });
  EXPECT_EQ(gate(), 13) << out_;
}

TEST_F(GateTest, AMachineThatTimesNothingIsUnusable) {
  add_run([](Row& row, int) {
    row.result.status = Status::bad_timer;
    return true;
  });
  EXPECT_EQ(gate(), 21) << out_;
  EXPECT_EQ(gate({"--fail-on", "latency"}), 0) << out_;
}

TEST_F(GateTest, ABadTimerOfOneCaseIsACoverageFailure) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.status = Status::bad_timer;
    return true;
  });
  EXPECT_EQ(gate(), 13) << out_;
}

TEST_F(GateTest, InconclusiveIsSaidAndFailsOnlyWhenAsked) {
  bless_run(add_run());
  add_run([](Row& row, int round) {
    if (is(row, "8", "fused")) row.result.span_ns *= 1 + 0.2 * round;
    return true;
  });
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_TRUE(says("1 inconclusive")) << out_;
  EXPECT_TRUE(says("1 blind")) << out_;
  EXPECT_EQ(gate({"--fail-on", "latency,inconclusive"}), 20) << out_;
}

TEST_F(GateTest, AnotherGpuOfTheClassIsJudgedWithWiderErrors) {
  bless_run(add_run());
  info_.device.uuid = "GPU-2";
  add_run([](Row& row, int) {
    row.result.span_ns *= 1.05;
    return true;
  });
  EXPECT_EQ(gate(), 21) << "nothing was replayed\n" << out_;
  EXPECT_TRUE(says("4 environment, 0 inconclusive")) << out_;
  EXPECT_TRUE(says("recorded on another device: GPU-1")) << out_;
}

}  // namespace
}  // namespace moegate::test
