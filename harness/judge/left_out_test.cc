// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/left_out.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

CaseVerdict verdict(const std::string& key, Outcome outcome, bool judged) {
  CaseVerdict v;
  v.id = {"s", key, "v"};
  v.outcome = outcome;
  v.why = "said before";
  if (judged) {
    v.latency.emplace();
    v.latency->outcome = outcome;
  }
  return v;
}

TEST(LeftOut, IsOpenWhateverTheNumbersAtHandSay) {
  GateResult result;
  result.cases = {verdict("slower", Outcome::regressed, true),
                  verdict("absent", Outcome::missing, false),
                  verdict("kept", Outcome::regressed, true)};
  leave_open(result, {{"s", "slower", "v"}, {"s", "absent", "v"}});
  EXPECT_EQ(result.left_out, (std::vector<std::string>{"absent v", "slower v"}));
  EXPECT_EQ(result.cases[0].outcome, Outcome::inconclusive);
  EXPECT_EQ(result.cases[0].latency->outcome, Outcome::inconclusive);
  EXPECT_EQ(result.cases[0].why, "left out: the time was up before it was replayed; said before");
  EXPECT_EQ(result.cases[1].outcome, Outcome::inconclusive);
  EXPECT_EQ(result.cases[1].why, "left out: the time was up before it was measured");
  EXPECT_EQ(result.cases[2].outcome, Outcome::regressed);
  count_outcomes(result);
  EXPECT_EQ(decide_exit(result, {}, false), Exit::latency);
}

TEST(LeftOut, AWrongOutputStaysWrong) {
  GateResult result;
  result.cases = {verdict("a", Outcome::wrong, true)};
  leave_open(result, {{"s", "a", "v"}});
  EXPECT_EQ(result.cases[0].outcome, Outcome::wrong);
}

TEST(LeftOut, IsCountedInTheFirstLine) {
  GateResult result;
  result.suites["s"].against = "a baseline";
  result.cases = {verdict("a", Outcome::pass, true), verdict("b", Outcome::pass, true)};
  leave_open(result, {{"s", "b", "v"}});
  count_outcomes(result);
  EXPECT_NE(sentence(result, Exit::ok).find("; 1 left out for want of time"), std::string::npos)
      << sentence(result, Exit::ok);
}

}  // namespace
}  // namespace moegate
