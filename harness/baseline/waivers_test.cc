// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/waivers.h"
#include "harness/base/test_fixture.h"

#include <fstream>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

using std::chrono::sys_days;

const char* const kWaivers =
    "# comment\n"
    "[W-1]\n"
    "cases = topk_sort/tokens=(8|16)\n"
    "max_cases = 2\n"
    "variant = fused\n"
    "class = nvidia-h200\n"
    "metric = latency\n"
    "max_regression = 6%\n"
    "reason = driver 610 is slower\n"
    "issue = org/repo/412\n"
    "owner = alice\n"
    "created = 2026-11-01\n"
    "expires = 2026-12-01\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string with(const std::string& from, const std::string& to) {
  return replaced(kWaivers, from, to);
}

sys_days day(int month, unsigned d) {
  return std::chrono::year(2026) / month / d;
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_waivers(text, "w.ini", day(11, 20)); });
}

TEST(Waivers, AreReadInOrder) {
  const auto waivers =
      parse_waivers(std::string(kWaivers) + with("[W-1]", "\n[W-0.2]"), "w.ini", day(11, 20));
  ASSERT_EQ(waivers.size(), 2u);
  EXPECT_EQ(waivers[1].id, "W-0.2");
  const Waiver& w = waivers[0];
  EXPECT_EQ(w.id, "W-1");
  EXPECT_EQ(w.max_cases, 2);
  EXPECT_EQ(w.klass, "nvidia-h200");
  EXPECT_EQ(w.metric, Waiver::Metric::latency);
  EXPECT_DOUBLE_EQ(w.max_regression, 0.06);
  EXPECT_EQ(w.reason, "driver 610 is slower");
  EXPECT_EQ(w.issue, "org/repo/412");
  EXPECT_EQ(w.owner, "alice");
  EXPECT_EQ(w.created, day(11, 1));
  EXPECT_EQ(w.expires, day(12, 1));
  EXPECT_TRUE(parse_waivers("# nothing\n", "w.ini").empty());
}

TEST(Waivers, LintNamesSectionAndField) {
  const std::pair<std::string, std::string> broken[] = {
      {with("org/repo/412", "https://x/y#12"), "w.ini:10: '#' starts a comment"},
      {with("owner = alice\n", "owner = alice\nowner = bob\n"), "w.ini:12: 'owner = bob'"},
      {std::string(kWaivers) + kWaivers, "w.ini:15: '[W-1]' is given twice"},
      {std::string(kWaivers) + "[W-1.]\nmax_cases = 9\n",
       "w.ini:14: [W-1.] is not the name of a section"},
      {std::string(kWaivers) + "[]\n", "w.ini:14: [] is not the name of a section"},
      {std::string(kWaivers) + "[W-2]\n", "w.ini: [W-2] has no fields"},
      {"[W-2]\n" + std::string(kWaivers), "w.ini: [W-2] has no fields"},
      {with("[W-1]\n", ""), "'cases' stands before the first [section]"},
      {with("owner = alice", "ownr = alice"),
       "w.ini: [W-1] has an unknown field 'ownr' (did you mean 'owner'?); known: cases"},
      {with("owner = alice\n", ""), "w.ini: [W-1] lacks 'owner'"},
      {with("owner = alice", "owner ="), "w.ini: [W-1] lacks 'owner'"},
      {with("owner = alice", "alice"),
       "w.ini:11: 'alice' cannot be read; write [section] or name = value"},
      // A name of Boost's own in what it puts into its messages: it would do so for ever.
      {with("owner = alice", "%invalid_line%"), "w.ini:11: '%invalid_line%' cannot be read"},
      {with("= latency", "= speed"), "metric 'speed' is unknown"},
      {with("6%", "26%"), "max_regression 26% is more than 25 %"},
      {replaced(with("2026-11-01", "2036-01-01"), "2026-12-01", "2036-03-30"),
       "was created 2036-01-01, which is after today, 2026-11-20"},
      {with("6%", "0.06"), "max_regression '0.06' is not a share"},
      {with("= latency", "= accuracy"), "has a max_regression"},
      {with("= 2\n", "= 0\n"), "max_cases '0'"},
      {with("topk_sort/tokens=(8|16)", ".*"),
       "[W-1] cases '.*' matches everything; name what it means"},
      {with("topk_sort/tokens=(8|16)", ".+"), "cases '.+' matches everything"},
      {with("topk_sort/tokens=(8|16)", "(topk.*)?"), "cases '(topk.*)?' matches everything"},
      {with("topk_sort/tokens=(8|16)", ".+/.+"), "cases '.+/.+' matches everything"},
      {with("= fused", "= [^,]*"), "[W-1] variant '[^,]*' matches everything"},
      {with("= 2\n", "= 1.5\n"), "max_cases '1.5'"},
      {with("(8|16)", "(8|16"),
       "w.ini: [W-1] cases 'topk_sort/tokens=(8|16' is not a regular expression"},
      {with("2026-12-01", "2026-13-01"), "expires '2026-13-01' is not a day"},
      {with("2026-12-01", "2026-11-31"), "expires '2026-11-31' is not a day"},
      {with("2026-12-01", "1677-12-01"), "expires '1677-12-01' is not a day from 2000 to 2199"},
      {with("2026-12-01", "2026-+1-01"), "expires '2026-+1-01' is not a day"},
      {with("2026-12-01", "tomorrow"), "expires 'tomorrow' is not a day"},
      {with("2026-12-01", "2026-11-01"), "not after its creation"},
      {with("2026-12-01", "2027-01-31"), "more than 90 days after 2026-11-01"},
      {replaced(with("= latency", "= coverage"), "max_regression = 6%\n", ""), "more than 14 days"},
  };
  for (const auto& [text, message] : broken) {
    EXPECT_NE(refusal(text).find(message), std::string::npos)
        << refusal(text) << "\nfor " << message;
  }
  EXPECT_EQ(refusal(with("2026-12-01", "2027-01-30")), "accepted") << "90 days";
}

TEST(Waivers, ThoseOfChoicesAreNotThoseOfAGate) {
  const fs::path file = fs::path(testing::TempDir()) / "of_choices.ini";
  std::ofstream(file) << kWaivers << replaced(with("[W-1]", "[W-2]"), "= latency", "= regret");
  const auto ids = [&](bool of_choices) {
    return mapped(read_waivers(file, of_choices), [](const Waiver& w) { return w.id; });
  };
  EXPECT_EQ(ids(true), std::vector<std::string>{"W-2"});
  EXPECT_EQ(ids(false), std::vector<std::string>{"W-1"});
  EXPECT_TRUE(read_waivers("", true).empty());
  fs::remove(file);
}

CaseVerdict verdict(Outcome outcome, double effect = 0, const std::string& tokens = "8") {
  CaseVerdict v;
  v.id = {"nightly", "topk_sort/tokens=" + tokens, "fused"};
  v.why = "why";
  come_to(v, outcome);
  if (effect != 0) {
    v.latency = Judgement{};
    v.latency->outcome = effect > 0.02 ? Outcome::regressed : Outcome::pass;
    v.latency->effect = effect;
  }
  return v;
}

GateResult waive(std::vector<CaseVerdict> cases, const std::string& text, sys_days on = day(11, 20),
                 bool full = true) {
  GateResult result;
  result.cases = std::move(cases);
  apply_waivers(result, parse_waivers(text, "w.ini", day(11, 20)), "nvidia-h200", on, full);
  return result;
}

int exit_of(const GateResult& result) {
  return static_cast<int>(decide_exit(result, {}, false));
}

std::string without_bound(const std::string& metric) {
  return replaced(replaced(with("= latency", "= " + metric), "max_regression = 6%\n", ""),
                  "2026-12-01", "2026-11-15");
}

TEST(Waivers, ALossWithinTheBoundIsWaived) {
  const GateResult r = waive({verdict(Outcome::regressed, 0.05)}, kWaivers);
  EXPECT_EQ(r.cases[0].outcome, Outcome::waived);
  EXPECT_EQ(r.cases[0].waiver, "W-1");
  EXPECT_EQ(r.cases[0].why, "why; waived by W-1 until 2026-12-01: driver 610 is slower");
  EXPECT_EQ(r.counts.at(Outcome::waived), 1);
  ASSERT_EQ(r.waiver_notes.size(), 1u);
  EXPECT_EQ(r.waiver_notes[0],
            "1 row waived by W-1 until 2026-12-01 (alice, org/repo/412): driver 610 is slower");
  EXPECT_EQ(exit_of(r), 0);
  EXPECT_EQ(sentence(r, Exit::latency).find("FAIL (exit 10): 1 waived, 0 inconclusive"), 0u)
      << sentence(r, Exit::latency);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::regressed, 0.05)}, kWaivers, day(12, 1))), 0)
      << "the last day";
}

TEST(Waivers, BeyondTheBoundItFails) {
  const GateResult r = waive({verdict(Outcome::regressed, 0.07)}, kWaivers);
  EXPECT_EQ(r.cases[0].outcome, Outcome::regressed);
  EXPECT_EQ(r.cases[0].why, "why; beyond the 6 % of waiver W-1");
  EXPECT_EQ(exit_of(r), 10);
  CaseVerdict crept = verdict(Outcome::regressed, 0.01);
  crept.creep = 0.07;
  EXPECT_EQ(exit_of(waive({crept}, kWaivers)), 10) << "the bound holds for the anchor too";
  crept.creep = 0.04;
  EXPECT_EQ(exit_of(waive({crept}, kWaivers)), 0);
}

TEST(Waivers, OnlyItsOwnMetricAndClassAndCase) {
  EXPECT_EQ(exit_of(waive({verdict(Outcome::wrong)}, kWaivers)), 11);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::missing)}, kWaivers)), 13);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::missing)}, without_bound("coverage"), day(11, 9))), 0);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::wrong)}, without_bound("accuracy"), day(11, 9))), 11)
      << "a wrong output is nobody's to waive";
  CaseVerdict drifted = verdict(Outcome::wrong);
  drifted.drift = true;
  EXPECT_EQ(exit_of(waive({drifted}, without_bound("accuracy"), day(11, 9))), 0);
  EXPECT_EQ(
      exit_of(waive({verdict(Outcome::regressed, 0.05)}, without_bound("accuracy"), day(11, 9))),
      10);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::regressed, 0.05)}, with("nvidia-h200", "b200"))), 10);
  EXPECT_EQ(exit_of(waive({verdict(Outcome::regressed, 0.05, "80")}, kWaivers)), 10)
      << "the whole key must match";
}

TEST(Waivers, ASlowerAndLessAccurateCaseNeedsBoth) {
  CaseVerdict v = verdict(Outcome::wrong, 0.05);
  v.drift = true;
  EXPECT_EQ(exit_of(waive({v}, kWaivers)), 12);
  EXPECT_EQ(exit_of(waive({v}, without_bound("accuracy"), day(11, 9))), 12);
  const std::string both = kWaivers + replaced(without_bound("accuracy"), "[W-1]", "[W-2]");
  const GateResult r = waive({v}, both, day(11, 9));
  EXPECT_EQ(exit_of(r), 0);
  EXPECT_EQ(r.cases[0].waiver, "W-2,W-1");
}

TEST(Waivers, AnExpiredOneWaivesNothingAndIsAProblem) {
  const GateResult fixed = waive({verdict(Outcome::pass)}, kWaivers, day(12, 2));
  EXPECT_EQ(exit_of(fixed), 24);
  EXPECT_EQ(fixed.waiver_problems.at(0), "waiver W-1 of alice expired on 2026-12-01; delete it");
  const GateResult failing = waive({verdict(Outcome::regressed, 0.05)}, kWaivers, day(12, 2));
  EXPECT_EQ(exit_of(failing), 10);
  EXPECT_NE(failing.waiver_problems.at(0).find("fix what still fails, 1 row"), std::string::npos);
}

TEST(Waivers, ATooBroadOneWaivesNothingAndIsAProblem) {
  const std::string narrow = with("= 2\n", "= 1\n");
  const auto cases = [](Outcome second) {
    return std::vector{verdict(Outcome::pass), verdict(second, 0.05, "16")};
  };
  EXPECT_EQ(exit_of(waive(cases(Outcome::regressed), narrow)), 10);
  const GateResult r = waive({verdict(Outcome::pass), verdict(Outcome::pass, 0.01, "16")}, narrow);
  EXPECT_EQ(exit_of(r), 24);
  EXPECT_NE(r.waiver_problems.at(0).find("matches 2 rows, its max_cases is 1"), std::string::npos);
}

TEST(Waivers, AtMostTwoPercentOfASuite) {
  const auto suite = [](size_t rows) {
    std::vector<CaseVerdict> cases(rows, verdict(Outcome::pass, 0, "1"));
    cases[0] = verdict(Outcome::regressed, 0.05, "8");
    cases[1] = verdict(Outcome::regressed, 0.05, "16");
    return cases;
  };
  const std::string apart = with("(8|16)", "8") + replaced(with("(8|16)", "16"), "[W-1]", "[W-2]");
  EXPECT_EQ(exit_of(waive(suite(99), apart)), 24);
  EXPECT_EQ(exit_of(waive(suite(100), apart)), 0);
  EXPECT_EQ(exit_of(waive(suite(100), kWaivers)), 0);
  const GateResult broad = waive(suite(99), kWaivers);
  EXPECT_EQ(exit_of(broad), 10) << "it waives nothing";
  EXPECT_NE(broad.waiver_problems.at(0).find("matches 2 of 99 rows, more than 2 %"),
            std::string::npos);
  EXPECT_EQ(exit_of(waive(suite(99), kWaivers, day(11, 20), false)), 24) << "a part of a suite";
}

TEST(Waivers, AProblemComesAfterFailuresAndBeforeInconclusive) {
  const auto with_problem = [](Outcome outcome) {
    GateResult r;
    r.cases = {verdict(outcome)};
    count_outcomes(r);
    r.waiver_problems = {"problem"};
    return r;
  };
  FailOn all;
  all.inconclusive = true;
  EXPECT_EQ(decide_exit(with_problem(Outcome::environment), all, true), Exit::environment);
  EXPECT_EQ(decide_exit(with_problem(Outcome::regressed), all, true), Exit::latency);
  EXPECT_EQ(decide_exit(with_problem(Outcome::missing), all, true), Exit::coverage);
  EXPECT_EQ(decide_exit(with_problem(Outcome::inconclusive), all, true), Exit::waiver);
  EXPECT_EQ(decide_exit(with_problem(Outcome::pass), all, true), Exit::waiver);
}

TEST(Waivers, AnUnneededOneIsTold) {
  const GateResult r = waive({verdict(Outcome::pass)}, kWaivers);
  EXPECT_EQ(exit_of(r), 0);
  ASSERT_EQ(r.waiver_notes.size(), 1u);
  EXPECT_EQ(r.waiver_notes[0].find("waiver W-1 was not needed: none of the 1 rows"), 0u);
  EXPECT_TRUE(waive({verdict(Outcome::pass)}, kWaivers, day(11, 20), false).waiver_notes.empty())
      << "a part of a suite says nothing";
}

TEST(Waivers, TheShippedFileIsValid) {
  EXPECT_NO_THROW(read_waivers(fs::path(MOEGATE_SOURCE_DIR) / "ci" / "waivers.ini"));
}

}  // namespace
}  // namespace moegate::test
