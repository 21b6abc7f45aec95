// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/completion.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

HelpFlag completed_flag(const char* name, const char* value, const char* about) {
  return {name, value, "", about};
}

HelpText completed_help() {
  return {{"moegate do [one|two] NAME PATH --suite S [options]"},
          {{"What",
            {completed_flag("--suite", "S", "suite by name, or a path"),
             completed_flag("--op", "OP,OP", "operators"),
             completed_flag("--axis", "P=V,V", "axis"), completed_flag("--filter", "RE", "cases"),
             completed_flag("--kernel", "RE", "only variants"),
             completed_flag("--head", "RUN", "the run after"),
             completed_flag("--base", "REF", "commit, branch or tag before"),
             completed_flag("--name", "NAME", "a report, by name (positional)"),
             completed_flag("--out", "DIR", "a folder"), completed_flag("--run", "", "also run it"),
             completed_flag("--device", "D", "auto, host, cuda or cuda:N")}},
           {"How",
            {completed_flag("--format", "F", "md; csv or json, a line for each"),
             completed_flag("--cache", "C", "cold, warm or cold-weights (default: cold)"),
             completed_flag("--rounds", "N", "worker processes")}}}};
}

Asked asked_of(const WordList& words) {
  return asked_for(completed_help(), words);
}

TEST(Completion, AFlagSaysWhatItsValueIs) {
  EXPECT_EQ(asked_of({"--suite", "ti"}).wanted, Wanted::suites);
  EXPECT_EQ(asked_of({"--suite", "ti"}).typed, "ti");
  EXPECT_EQ(asked_of({"--suite", "./t"}).wanted, Wanted::files);
  EXPECT_EQ(asked_of({"--kernel", ""}).wanted, Wanted::variants);
  EXPECT_EQ(asked_of({"--head", ""}).wanted, Wanted::runs);
  EXPECT_EQ(asked_of({"--name", "lat"}).wanted, Wanted::reports);
  EXPECT_EQ(asked_of({"--out", ""}).wanted, Wanted::files);
  EXPECT_EQ(asked_of({"--base", ""}).wanted, Wanted::nothing);
}

TEST(Completion, AValueIsOneOfThoseThatItsDescriptionBeginsWith) {
  EXPECT_EQ(asked_of({"--device", ""}).words, (WordList{"auto", "host", "cuda"}));
  EXPECT_EQ(asked_of({"--format", ""}).words, (WordList{"md", "csv", "json"}));
  EXPECT_EQ(asked_of({"--cache", ""}).words, (WordList{"cold", "warm", "cold-weights"}));
  EXPECT_EQ(asked_of({"--rounds", ""}).words, WordList{});
}

TEST(Completion, ThePlaceOfSeveralTakesAnyNumber) {
  const HelpText help = {
      {"moegate put OUT IN... [options]"},
      {{"What",
        {completed_flag("--out", "FILE", "where"), completed_flag("--in", "FILE", "what"),
         completed_flag("--all", "", "of them")}}}};
  for (const WordList& words : {WordList{"a"}, WordList{"a", "b"}, WordList{"a", "b", "--all", "c"},
                                WordList{"a", "b", "c", "d"}}) {
    EXPECT_EQ(asked_for(help, words).wanted, Wanted::files) << words.size();
  }
  EXPECT_EQ(asked_for(help, {"a", "--a"}).wanted, Wanted::words);
}

TEST(Completion, OfAListTheLastPartIsCompleted) {
  const Asked asked = asked_of({"--op", "moe_sum,to"});
  EXPECT_EQ(asked.wanted, Wanted::operators);
  EXPECT_EQ(asked.before, "moe_sum,");
  EXPECT_EQ(asked.typed, "to");
}

TEST(Completion, AFlagWithItsValueIsOneWordOrThree) {
  const Asked asked = asked_of({"--suite=ti"});
  EXPECT_EQ(asked.wanted, Wanted::suites);
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
  EXPECT_EQ(asked_of({"--axis", "to"}).wanted, Wanted::axis);
  EXPECT_EQ(typed({"--axis", "to"}), "|to|");
  EXPECT_EQ(typed({"--axis", "tokens="}), "tokens=||tokens");
  EXPECT_EQ(typed({"--axis=tokens=1,6"}), "--axis=tokens=1,|6|tokens");
  EXPECT_EQ(asked_of({"--filter", ""}).wanted, Wanted::case_part);
  EXPECT_EQ(typed({"--filter", "^moe_sum/.*(hid"}), "^moe_sum/.*(|hid|");
  EXPECT_EQ(typed({"--filter", "tokens=8,topk=1"}), "tokens=8,topk=|1|topk");
}

TEST(Completion, PlacesAreThoseOfTheUsage) {
  EXPECT_EQ(asked_of({""}).words, (WordList{"one", "two"}));
  EXPECT_EQ(asked_of({"--suite", "tiny", "--run", "one", ""}).wanted, Wanted::reports);
  EXPECT_EQ(asked_of({"one", "latency", ""}).wanted, Wanted::files);
  const Asked flags = asked_of({"one", "latency", "file", ""});
  EXPECT_EQ(flags.words.size(), 14u) << "the flags of every group";
  EXPECT_EQ(asked_of({"--r"}).typed, "--r");
  EXPECT_EQ(asked_of({"--r"}).words, flags.words);
  EXPECT_EQ(asked_of({"--run", ""}).words, (WordList{"one", "two"})) << "a switch has no value";
}

TEST(Completion, TheLastValueOfAFlagCounts) {
  EXPECT_EQ(value_of("--db", {"--db", "a", "--db=b", "--run"}), "b");
  EXPECT_EQ(value_of("--db", {"--run", "1"}), std::nullopt);
}

}  // namespace
}  // namespace moegate
