// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "harness/base/files.h"
#include "harness/judge/gate.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

Outcome outcome_of_rules(std::initializer_list<Rule> rules) {
  CaseVerdict v;
  for (const Rule rule : rules) find(v, rule, "why");
  return v.outcome;
}

TEST(Rules, TheFirstOfWhatWasFoundDecides) {
  EXPECT_EQ(outcome_of(Found()), Outcome::pass);
  EXPECT_EQ(outcome_of_rules({Rule::not_slower}), Outcome::pass);
  EXPECT_EQ(outcome_of_rules({Rule::slower, Rule::left_open}), Outcome::inconclusive);
  EXPECT_EQ(outcome_of_rules({Rule::worse_output, Rule::slower}), Outcome::wrong);
  EXPECT_EQ(outcome_of_rules({Rule::identical, Rule::slow_to_enqueue}), Outcome::regressed);
  EXPECT_EQ(outcome_of_rules({Rule::slower, Rule::waived}), Outcome::waived);
  EXPECT_EQ(outcome_of_rules({Rule::absent, Rule::known_identical}), Outcome::identical);
  EXPECT_EQ(outcome_of_rules({Rule::uncertain, Rule::crept}), Outcome::regressed);
}

TEST(Rules, WhatIsFoundFirstOrLastDecidesNothing) {
  constexpr auto kAll = static_cast<int>(kRuleCount);
  for (int a = 0; a < kAll; ++a) {
    for (int b = 0; b < kAll; ++b) {
      const Rule one = static_cast<Rule>(a), other = static_cast<Rule>(b);
      EXPECT_EQ(outcome_of_rules({one, other}),
                outcome_of_rules({static_cast<Rule>(std::min(a, b))}));
      EXPECT_EQ(outcome_of_rules({one, other}), outcome_of_rules({other, one}));
    }
  }
}

TEST(Rules, NothingElseGivesARowAnOutcome) {
  // A test of latency (Judgement) has an outcome of its own, in verdict.cc.
  const std::regex written(R"((\.|->)outcome *= *[^=])");
  for (const char* room : {"judge", "report", "campaign", "commands"}) {
    const fs::path folder = fs::path(MOEGATE_SOURCE_DIR) / "harness" / room;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      const bool is_test =
          name.find("_test.cc") != name.npos || name.find("_fixture.h") != name.npos;
      if (is_test || name == "rules.cc" || name == "verdict.cc") continue;
      EXPECT_FALSE(std::regex_search(read_file(entry.path()), written)) << room << "/" << name;
    }
  }
}

}  // namespace
}  // namespace moegate::test
