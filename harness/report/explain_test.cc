// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <nlohmann/json.hpp>
#include <set>

#include "harness/cause/cause_fixture.h"
#include "harness/judge/gate_fixture.h"
#include "harness/report/gate_report.h"

namespace moegate {
namespace {

class ExplainTest : public GateTest {
 protected:
  ExplainTest() { info_.program = "old"; }

  /// A run whose kernels are the fixture's; fused takes so much longer in all its cases.
  int64_t measured(double slower) {
    return add_run([&](Row& row, int) {
      Result result = timed_row();
      result.variant = row.variant;
      if (row.variant == "fused") result.span_ns = result.busy_ns *= 1 + slower;
      row.result = result;
      return true;
    });
  }
  /// Counters of the same program; fused reads so many bytes.
  int64_t counted(double bytes) {
    info_.task = "counters";
    const int64_t run = add_run([&](Row& row, int round) {
      row.result = counted_row();
      row.result.variant = row.variant;
      row.result.metrics[0].value = row.variant == "fused" ? bytes : 1e6;
      return round == 0;
    });
    info_.task = "measure";
    return run;
  }
  /// Runs of two programs, counted, of which the second reads more.
  void two_runs() {
    base_ = measured(0);
    counted(16e6);
    info_.program = "new";
    head_ = measured(0.2);
    counted(24e6);
  }
  /// Two runs of two programs whose fused differs by so much, and in a counter that explains nothing.
  void two_runs_apart_by(double slower) {
    info_.program = "old";
    base_ = measured(0);
    counted(16e6);
    info_.program = "new";
    head_ = measured(slower);
    info_.task = "counters";
    add_run([&](Row& row, int round) {
      row.result = counted_row();
      row.result.variant = row.variant;
      row.result.metrics[0].value = row.variant == "fused" ? 16e6 : 1e6;
      for (Metric& m : row.result.metrics)
        m.value *= m.name.starts_with("sm__warps_active") ? 0.7 : 1;
      return round == 0;
    });
    info_.task = "measure";
  }
  /// As if a verdict of the head against the base had come to this about all of its rows.
  void judged_as(const std::string& against, Outcome outcome, double effect) {
    Store store = Store::open(db_, Store::Mode::write);
    GateResult result;
    result.suites["nightly"].against = against;
    for (const auto& [id, side] : collect(store.each_level(head_))) {
      CaseVerdict v;
      v.id = id;
      v.against = against;
      v.outcome = outcome;
      v.latency = Judgement{.outcome = outcome, .effect = effect};
      result.cases.push_back(v);
    }
    store_verdicts(store, head_, result);
  }
  int explain_them(Args args = {}) {
    args.insert(args.begin(),
                {"why", "--against", std::to_string(base_), "--run", std::to_string(head_)});
    return call(cmd_report, args);
  }

  int64_t base_ = 0, head_ = 0;
};

TEST_F(ExplainTest, StoredRunsAreEnough) {
  two_runs();
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("- `topk_sort/tokens=8` `fused` +20.0 %: DRAM bytes read +50 % (16 -\\> 24 MB)"))
      << out_;
  EXPECT_TRUE(says("`topk_sort/tokens=8` `chain` +0.0 %: nothing differs: ")) << out_;
  EXPECT_TRUE(says("| dram\\_\\_bytes_read.sum ")) << out_;
  EXPECT_FALSE(says("moegate profile")) << "both sides were counted\n" << out_;

  EXPECT_EQ(explain_them({"--filter", "tokens=8$", "--variant", "fused", "--format", "json"}), 0);
  const auto rows = nlohmann::json::parse(out_);
  EXPECT_EQ(rows[0]["number"], "dram__bytes_read.sum") << "those of the sentence first";
  for (const auto& row : rows) EXPECT_EQ(row["case"], "topk_sort/tokens=8");
}

TEST_F(ExplainTest, ARowIsExplainedAsAmongAll) {
  two_runs();
  EXPECT_EQ(explain_them({"--format", "json"}), 0);
  auto of_case = nlohmann::json::array();
  for (const auto& row : nlohmann::json::parse(out_)) {
    if (row["case"] == "topk_sort/tokens=8") of_case.push_back(row);
  }
  ASSERT_FALSE(of_case.empty());
  EXPECT_EQ(explain_them({"--filter", "tokens=8$", "--format", "json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_), of_case);
}

TEST_F(ExplainTest, WhatIsMissingHasACommand) {
  base_ = measured(0);
  info_.program = "new";
  info_.git_sha = "beef";
  head_ = measured(0.2);
  counted(24e6);
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("unknown: of the base no counters")) << out_;
  EXPECT_TRUE(
      says("To count run 1 'night', with the program of abc123: `moegate profile --suite "
           "nightly --db "))
      << out_;
  EXPECT_FALSE(says("the program of beef")) << "the head was counted\n" << out_;
}

TEST_F(ExplainTest, TwoVariantsOfACaseAreAPair) {
  const auto only = [&](const char* variant) {
    return add_run([&](Row& row, int) {
      row.result = timed_row();
      row.result.variant = row.variant;
      return row.variant == variant;
    });
  };
  base_ = only("chain");
  head_ = only("fused");
  EXPECT_EQ(explain_them({"--format", "csv"}), 0) << out_;
  EXPECT_TRUE(says("chain → fused")) << out_;
}

TEST_F(ExplainTest, WhatIsJudgedEqualDoesNotDiffer) {
  two_runs_apart_by(0.006);  // 3 processes a side
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +0.6 %: nothing differs: 18 counters")) << out_;
  two_runs_apart_by(0.02);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +2.0 %: unknown: active warps 12 -\\> 8.4 %, which does not")) << out_;
}

TEST_F(ExplainTest, WhatIsJudgedEqualNeedsNoCounters) {
  base_ = measured(0);
  info_.program = "new";
  head_ = measured(0.006);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("+0.6 %: nothing differs: judged equal; of both sides no counters; the same"))
      << out_;
}

TEST_F(ExplainTest, AStoredVerdictOfTheTwoStands) {
  two_runs_apart_by(0.02);
  judged_as("run 7 'night'", Outcome::pass, 0.012);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +2.0 %: unknown")) << "that was another base's\n" << out_;
  judged_as(fmt::format("run {} 'night'", base_), Outcome::inconclusive, 0.019);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +1.9 %: unknown")) << out_;
  judged_as(fmt::format("run {} 'night' at abc123", base_), Outcome::pass, 0.012);
  EXPECT_EQ(explain_them({"--variant", "fused"}), 0);
  EXPECT_TRUE(says("`fused` +1.2 %: nothing differs")) << "rounds of an A/B are paired\n" << out_;
}

TEST_F(ExplainTest, RowsThatASideHasNoResultOfAreCounted) {
  const auto without = [&](const std::set<std::string>& unsupported) {
    return add_run([&](Row& row, int) {
      row.result = timed_row();
      row.result.variant = row.variant;
      if (!unsupported.contains(row.variant)) return true;
      row.result = {};
      row.result.variant = row.variant;
      row.result.status = Status::unsupported;
      return true;
    });
  };
  base_ = without({"fused"});
  head_ = without({"fused"});
  EXPECT_EQ(explain_them(), 0);
  EXPECT_TRUE(says("Why (2)")) << out_;
  EXPECT_FALSE(says("`fused`")) << out_;
  EXPECT_TRUE(says("Left out: 2 rows without a result on one side or both")) << out_;
  head_ = without({});
  EXPECT_EQ(explain_them(), 0);
  EXPECT_FALSE(says("`fused`")) << "one side lacks it\n" << out_;
  base_ = head_;
  head_ = without({"chain", "fused"});
  base_ = without({"chain", "fused"});
  EXPECT_EQ(explain_them(), 0) << out_;
  EXPECT_TRUE(says("Left out: 4 rows")) << out_;
}

TEST_F(ExplainTest, RefusesWhatItCannotExplain) {
  two_runs();
  EXPECT_EQ(explain_them({"--filter", "tokens=7"}), 13);
  EXPECT_TRUE(says("no row in common that matches --filter 'tokens=7'")) << out_;
  EXPECT_EQ(explain_them({"--filter", "("}), 2);
  EXPECT_EQ(call(cmd_report, {"why", "--run", "1"}), 2);
  EXPECT_EQ(call(cmd_report, {"why", "--against", "1", "--run", "1"}), 2);
  EXPECT_TRUE(says("both run 1")) << out_;
  EXPECT_EQ(call(cmd_report, {"why", "--against", "1", "--run", "77"}), 2);
}

}  // namespace
}  // namespace moegate
