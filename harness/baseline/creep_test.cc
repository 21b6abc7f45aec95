// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/creep.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

TEST(Creep, CountsFromTheAnchor) {
  EXPECT_NEAR(creep(0, 103, 100), 0.03, 1e-12);
  EXPECT_NEAR(creep(0.01, 102, 100), 0.0302, 1e-12);
  EXPECT_NEAR(creep(-0.02, 102, 100), -0.0004, 1e-12);
}

TEST(Creep, ARowMayLoseAtLeastWhatFailsItAgainstTheBaseline) {
  EXPECT_EQ(CreepLimits::of(Backend::cuda, Limits::cuda()).row, 0.03);
  EXPECT_EQ(CreepLimits::of(Backend::host, Limits::host()).row, 0.20);
  EXPECT_EQ(CreepLimits::of(Backend::host, Limits::host()).geomean, 0.10);
  Limits wide = Limits::cuda();
  wide.fail_at = 0.1;
  EXPECT_EQ(CreepLimits::of(Backend::cuda, wide).row, 0.1);
}

/// One case, `low` above a baseline of 102 at least.
CaseVerdict judged(Outcome outcome, double low, double anchor) {
  const CaseId id{"nightly", "op/tokens=8", "fused"};
  GateResult result;
  result.cases.resize(1);
  result.cases[0].id = id;
  come_to(result.cases[0], outcome);
  result.cases[0].latency = Judgement{};
  result.cases[0].latency->low = low;
  std::map<std::string, Expectation> expected;
  Side& side = expected["nightly"].sides[id];
  side.level = {std::log(102.0), 0, 3};
  side.anchor = anchor;
  apply_creep(result, expected, CreepLimits::cuda());
  EXPECT_EQ(result.counts.at(result.cases[0].outcome), 1);
  return result.cases[0];
}

TEST(Creep, FailsWhatPassesAndOnlyBeyondTheLimit) {
  EXPECT_EQ(judged(Outcome::pass, 0.009, 100).outcome, Outcome::pass);
  const CaseVerdict v = judged(Outcome::pass, 0.011, 100);
  EXPECT_EQ(v.outcome, Outcome::regressed);
  EXPECT_NE(v.why.find("creep: at least +3.1 % from its anchor 100"), std::string::npos) << v.why;
  EXPECT_EQ(judged(Outcome::inconclusive, 0.011, 100).outcome, Outcome::regressed);
  EXPECT_EQ(judged(Outcome::wrong, 0.011, 100).outcome, Outcome::wrong);
  EXPECT_EQ(judged(Outcome::inconclusive, 0.05, 102).outcome, Outcome::inconclusive)
      << "the baseline is the anchor";
  EXPECT_EQ(judged(Outcome::pass, 0.05, 0).outcome, Outcome::pass) << "no anchor";
}

TEST(Creep, OfASuiteIsItsGeometricMean) {
  Baseline b;
  b.header.suite = "nightly";
  for (int i = 0; i < 10; ++i) {
    BaselineRow& row = b.rows[{"op/tokens=" + std::to_string(i), "v"}];
    row.anchor = 100;
    row.level = i < 5 ? 101.9 : 100;
  }
  EXPECT_EQ(beyond_anchor(b, CreepLimits::cuda()), "") << "0.95 %";
  b.rows.rbegin()->second.level = 102;
  EXPECT_EQ(beyond_anchor(b, CreepLimits::cuda()),
            "the geometric mean of suite 'nightly' is +1.1 % from its anchors, more than +1.0 %");
  b.rows.rbegin()->second.level = 103.5;
  EXPECT_EQ(beyond_anchor(b, CreepLimits::cuda()),
            "op/tokens=9 v: 103.5 is +3.5 % from its anchor 100, more than +3.0 %");
  reset_anchors(b);
  EXPECT_EQ(beyond_anchor(b, CreepLimits::cuda()), "");
}

}  // namespace
}  // namespace moegate::test
