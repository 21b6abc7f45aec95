// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/completion.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

const Verb& completed_verb() {
  static const Verb verb{{"do"}, "does", {"one|two REPORT FILES... --suite S [options]"}, {}, {}};
  return verb;
}

const Flags& completed_flags() {
  static std::string text;
  static bool set = false;
  static const Flags all = [] {
    Flags flags("What"), more("How");
    for (const char* name :
         {"suite", "op", "axis", "filter", "variant", "run", "base", "out", "report", "device"}) {
      flags.add(flag(name, text));
    }
    flags.add(flag("profile", set));
    for (const char* name : {"format", "cache", "rounds"}) more.add(flag(name, text));
    return flags.add(more);
  }();
  return all;
}

Asked asked_of(const WordList& words) {
  return asked_for(completed_verb(), completed_flags(), words);
}

TEST(Completion, AFlagSaysWhatItsValueIs) {
  EXPECT_EQ(asked_of({"--suite", "ti"}).wanted, ValueKind::suite);
  EXPECT_EQ(asked_of({"--suite", "ti"}).typed, "ti");
  EXPECT_EQ(asked_of({"--suite", "./t"}).wanted, ValueKind::file);
  EXPECT_EQ(asked_of({"--variant", ""}).wanted, ValueKind::variant);
  EXPECT_EQ(asked_of({"--run", ""}).wanted, ValueKind::run);
  EXPECT_EQ(asked_of({"--report", "lat"}).wanted, ValueKind::report);
  EXPECT_EQ(asked_of({"--out", ""}).wanted, ValueKind::file);
  EXPECT_EQ(asked_of({"--base", ""}).wanted, ValueKind::text);
}

TEST(Completion, AValueIsOneOfItsChoices) {
  EXPECT_EQ(asked_of({"--device", ""}).words, (WordList{"auto", "host", "cuda", "all"}));
  EXPECT_EQ(asked_of({"--format", ""}).words, (WordList{"text", "md", "csv", "tsv", "json"}));
  EXPECT_EQ(asked_of({"--cache", ""}).words, (WordList{"cold", "warm", "both", "cold-weights"}));
  EXPECT_EQ(asked_of({"--rounds", ""}).words, WordList{});
}

TEST(Completion, ThePlaceOfSeveralTakesAnyNumber) {
  for (const WordList& words : {WordList{"one", "a", ""}, WordList{"one", "a", "b", ""},
                                WordList{"one", "a", "b", "--profile", "c"}}) {
    EXPECT_EQ(asked_of(words).wanted, ValueKind::file) << words.size();
  }
  EXPECT_EQ(asked_of({"one", "--a"}).wanted, ValueKind::choice);
}

TEST(Completion, EveryUsageAddsToAPlace) {
  const Verb verb{{"put"}, "puts", {"merge OUT IN... [options]", "prune [options]"}, {}, {}};
  EXPECT_EQ(asked_for(verb, Flags(), {""}).words, (WordList{"merge", "prune"}));
  EXPECT_EQ(asked_for(verb, Flags(), {"merge", ""}).wanted, ValueKind::file);
}

TEST(Completion, OfAListTheLastPartIsCompleted) {
  const Asked asked = asked_of({"--op", "moe_sum,to"});
  EXPECT_EQ(asked.wanted, ValueKind::op);
  EXPECT_EQ(asked.before, "moe_sum,");
  EXPECT_EQ(asked.typed, "to");
}

TEST(Completion, AFlagWithItsValueIsOneWordOrThree) {
  const Asked asked = asked_of({"--suite=ti"});
  EXPECT_EQ(asked.wanted, ValueKind::suite);
  EXPECT_EQ(asked.before, "--suite=");
  EXPECT_EQ(asked.typed, "ti");
  EXPECT_EQ(joined_words({"--suite", "=", "ti"}).words, (WordList{"--suite", "ti"}));
  EXPECT_EQ(joined_words({"--suite", "="}).words, (WordList{"--suite", ""}));
}

TEST(Completion, AValueThatBashCutsIsOneWordOfWhichBashHasTheBeginning) {
  const auto cut = [](const WordList& words) {
    const auto [joined, bytes] = joined_words(words);
    return joined.back().substr(0, bytes) + "|" + joined.back().substr(bytes);
  };
  EXPECT_EQ(cut({"--axis", "a", "=", "1"}), "a=|1");
  EXPECT_EQ(cut({"--axis", "a", "="}), "a=|");
  EXPECT_EQ(cut({"--axis", "=", "a", "=", "1,2"}), "a=|1,2");
  EXPECT_EQ(cut({"--axis", "routing", "=", "zipf", ":", "0.6"}), "routing=zipf:|0.6");
  EXPECT_EQ(cut({"--axis", "a", "=", "1", "--to"}), "|--to");
}

TEST(Completion, ParametersAndTheirValues) {
  const auto typed = [](const WordList& words) {
    const Asked asked = asked_of(words);
    return asked.before + "|" + asked.typed + "|" + asked.of;
  };
  EXPECT_EQ(asked_of({"--axis", "to"}).wanted, ValueKind::axis);
  EXPECT_EQ(typed({"--axis", "to"}), "|to|");
  EXPECT_EQ(typed({"--axis", "tokens="}), "tokens=||tokens");
  EXPECT_EQ(typed({"--axis=tokens=1,6"}), "--axis=tokens=1,|6|tokens");
  EXPECT_EQ(asked_of({"--filter", ""}).wanted, ValueKind::filter);
  EXPECT_EQ(typed({"--filter", "^moe_sum/.*(hid"}), "^moe_sum/.*(|hid|");
  EXPECT_EQ(typed({"--filter", "tokens=8,topk=1"}), "tokens=8,topk=|1|topk");
}

TEST(Completion, PlacesAreThoseOfTheUsage) {
  EXPECT_EQ(asked_of({""}).words, (WordList{"one", "two"}));
  EXPECT_EQ(asked_of({"--suite", "tiny", "--profile", "one", ""}).wanted, ValueKind::report);
  EXPECT_EQ(asked_of({"one", "latency", ""}).wanted, ValueKind::file);
  EXPECT_EQ(asked_of({"--r"}).typed, "--r");
  EXPECT_EQ(asked_of({"--r"}).words.size(), 15u) << "the flags of every group, and --help";
  EXPECT_EQ(asked_of({"--profile", ""}).words, (WordList{"one", "two"})) << "a switch has no value";
}

TEST(Completion, TheLastValueOfAFlagCounts) {
  EXPECT_EQ(value_of("--db", {"--db", "a", "--db=b", "--run"}), "b");
  EXPECT_EQ(value_of("--db", {"--run", "1"}), std::nullopt);
}

}  // namespace
}  // namespace moegate::test
