// SPDX-License-Identifier: Apache-2.0
// What the tests of gate, compare and bless share: a folder with a synthetic store, and calls of
// the commands.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"
#include "harness/baseline/baseline.h"
#include "harness/commands/commands.h"
#include "harness/judge/gate.h"
#include "harness/store/store.h"

namespace moegate::test {

namespace fs = std::filesystem;
using Args = std::vector<std::string>;

inline Accuracy accuracy(double rel_l2) {
  Accuracy a;
  a.output = "weights";
  a.ok = true;
  a.rel_l2 = rel_l2;
  return a;
}

/// One process's result of a variant, to be changed by a test.
struct Row {
  std::string tokens, variant;
  Result result;
};

class GateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"suites", "reports", "baselines"})
      fs::create_directories(dir_ / folder);
    info_.label = "night";
    info_.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1", 132, 60 << 20, 1, 1,
                    "580"};
    info_.protocol = 1;
    info_.timer = "cupti";
    info_.flush = "read";
    info_.rounds = 3;
    info_.git_sha = "abc123";
    info_.command = "moegate run --suite nightly";
    info_.options = R"({"filtered": false})";
  }

  /// Stores a run of two cases x two variants x three processes with 0.2 % noise; `change` may
  /// alter a row or, returning false, leave it out.
  int64_t add_run(const std::function<bool(Row&, int)>& change = {},
                  const std::string& status = "complete") {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info_);
    constexpr double kNoise[] = {1, 1.002, 0.998};
    for (int round = 0; round < 3; ++round) {
      const int64_t process = store.begin_process(run, round, 100 + round);
      for (const char* tokens : {"8", "16"}) {
        for (const char* variant : {"chain", "fused"}) {
          Row row{tokens, variant, {}};
          Result& r = row.result;
          r.variant = variant;
          r.timer = info_.timer;
          r.tick_ns = 32;
          r.samples = 100;
          r.span_ns = 10000 * kNoise[round];
          r.min_ns = 0.97 * r.span_ns;
          const bool yardstick = row.variant == "chain";
          const bool host = info_.device.backend == Backend::host;
          r.judged = !host ? Judged::span : yardstick ? Judged::is_yardstick : Judged::ratio;
          if (host) r.yardstick = "chain", r.yardstick_code = "c4a1";
          if (host && yardstick) r.code = "c4a1";
          r.ratio = yardstick ? 1 : 0.5 * kNoise[round];
          r.ratio_low = yardstick ? 1 : 0.98 * r.ratio;
          r.ratio_high = yardstick ? 1 : 1.02 * r.ratio;
          r.accuracy = {accuracy(1e-3)};
          if (change && !change(row, round)) continue;
          const Case c{"nightly", "gpt-oss-120b", "topk_sort", {{"tokens", tokens}}, {}};
          store.add_result(process, c, {1, 2, 3}, {}, r);
        }
      }
      store.set_environment(process, environment_);
      store.end_process(process, round == 0 ? "sw_power_cap" : "");
    }
    store.end_run(run, status);
    return run;
  }

  void bless_run(int64_t run) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(cmd_bless({"--db", db_, "--run", std::to_string(run), "--reason", "first"}), 0);
    testing::internal::GetCapturedStdout();
  }

  /// Has the ledger say that the baseline file was blessed as it is.
  void record_baseline() const {
    append_blessing(dir_ / "baselines" / "blessings.tsv",
                    {.id = "B0900",
                     .klass = "nvidia-h200",
                     .suite = "nightly",
                     .sha256 = sha256(read_file(baseline()))});
  }

  /// Runs a command; its stdout is in out_.
  int call(int (*command)(const Args&), Args args) {
    args.insert(args.end(), {"--db", db_});
    const bool prints = command == cmd_report || command == cmd_gate;
    if (prints && std::ranges::count(args, "--format") == 0)
      args.insert(args.end(), {"--format", "md"});  // whole lines
    testing::internal::CaptureStdout();
    int code = -1;
    try {
      code = command(args);
      out_ = testing::internal::GetCapturedStdout();
    } catch (const Error& e) {
      testing::internal::GetCapturedStdout();
      out_ = e.what();
      code = static_cast<int>(e.code());
    }
    return code;
  }
  int gate(Args args = {}) { return call(cmd_gate, std::move(args)); }
  bool says(const std::string& text) const { return out_.find(text) != std::string::npos; }
  fs::path baseline() const { return dir_ / "baselines" / "nvidia-h200" / "nightly.tsv"; }

  ScratchFolder dir_;
  const ScopedVariable home_{"MOEGATE_HOME", dir_.path()};
  const ScopedCurrentFolder here_{dir_.path()};  // not in this repository, which has a moegate.ini
  const std::string db_ = (dir_ / "r.db").string();
  std::string out_;
  RunInfo info_;
  EnvironmentItems environment_;  // of every process
};

inline bool is(const Row& row, const char* tokens, const char* variant) {
  return row.tokens == tokens && row.variant == variant;
}

// For tests: rows that were found to come to something.

/// The weakest rule of this outcome is found.
inline void come_to(CaseVerdict& v, Outcome outcome) {
  for (size_t i = kRuleCount; i-- > 0;) {
    Found found;
    found.set(i);
    if (outcome_of(found) == outcome) return find(v, static_cast<Rule>(i), v.why);
  }
}

}  // namespace moegate::test
