// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/cli.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

TEST(Cli, Seconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "2s"), 2);
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "1.5min"), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "2m"), 120);
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "0.5h"), 1800);
  EXPECT_THROW(parse_seconds("--t", "3"), Error) << "of seconds, or of minutes?";
  for (const char* bad : {"", "s", "-1", "0", "5 parsecs", "nan"}) {
    EXPECT_THROW(parse_seconds("--t", bad), Error) << bad;
  }
}

TEST(Cli, AssignmentsAndLists) {
  EXPECT_EQ(split_assignment("--axis", "a=b=c"),
            std::make_pair(std::string("a"), std::string("b=c")));
  EXPECT_THROW(split_assignment("--axis", "=b"), Error);
  EXPECT_THROW(split_assignment("--axis", "a="), Error);
  EXPECT_EQ(parse_list("--axis", "1,2"), (std::vector<std::string>{"1", "2"}));
  EXPECT_THROW(parse_list("--axis", "1,,2"), Error);
}

TEST(Cli, FlagsAreNotGuessed) {
  int rounds = 0;
  Flags flags;
  flags.add(flag("rounds", rounds));
  EXPECT_THROW(parse("run", flags, {"--round", "3"}), Error);
  EXPECT_TRUE(parse("run", flags, {"--rounds", "3"}));
  EXPECT_EQ(rounds, 3);
}

TEST(Cli, AMistypedFlagIsNamed) {
  int rounds = 0;
  Flags flags;
  flags.add(flag("rounds", rounds));
  const auto refusal = [&](const char* flag) {
    return refusal_of([&] { parse("run", flags, {flag, "3"}); });
  };
  EXPECT_NE(refusal("--ronuds").find("(did you mean '--rounds'?)"), std::string::npos);
  EXPECT_EQ(refusal("--xyz").find("did you mean"), std::string::npos);
  EXPECT_NE(refusal("--kernel").find("use `--variant RE`"), std::string::npos);
}

TEST(Cli, AMessageAboutAnArgumentEnds) {
  int rounds = 0;
  Flags flags;
  flags.add(flag("rounds", rounds));
  for (const Args& args : {Args{"--rounds", "%value%"}, {"--%canonical_option%"}, {"%option%"}}) {
    const std::string why = refusal_of([&] { parse("run", flags, args); });
    EXPECT_NE(why.find("'" + args.back() + "' is not understood"), std::string::npos) << why;
  }
}

TEST(Cli, AFlagThatIsLeftOutLeavesItsFieldEmpty) {
  std::optional<std::string> report;
  Flags flags;
  flags.add(flag("chart", report));
  EXPECT_TRUE(parse("report", flags, {}));
  EXPECT_FALSE(report);
  EXPECT_TRUE(parse("report", flags, {"--chart", ""}));
  EXPECT_EQ(report, "");
}

TEST(Cli, TimesAreFinite) {
  for (const char* bad : {"inf", "1e300s", "1e10s", "1e308min", "605000"}) {
    EXPECT_THROW(parse_seconds("--t", bad), Error) << bad;
  }
  EXPECT_DOUBLE_EQ(parse_seconds("--t", "604800s"), 604800);
  EXPECT_NO_THROW(within("--n", 3, 1, 3));
  EXPECT_THROW(within("--n", 4, 1, 3), Error);
  EXPECT_THROW(within("--n", std::nan(""), 1, 3), Error);
}

TEST(Cli, NamesHaveNoControlCharacters) {
  EXPECT_EQ(plain_name("--label", "night 3, größer"), "night 3, größer");
  for (const char* bad : {"a\nb", "\x1b[2J", "a\tb", "\xff", "\xE2\x80\xAE"}) {
    EXPECT_THROW(plain_name("--label", bad), Error) << bad;
  }
}

TEST(Cli, KnowsWhatWasTyped) {
  int rounds = 3;
  std::string db;
  Flags flags;
  flags.add(flag("rounds", rounds)).add(flag("db", db));
  std::set<std::string> given;
  EXPECT_TRUE(parse("run", flags, {"--db", "x"}, {}, &given));
  EXPECT_EQ(given, std::set<std::string>{"db"});
  EXPECT_NO_THROW(refuse_beside_resume({"resume", "db"}, {"db"}));
  EXPECT_THROW(refuse_beside_resume({"resume", "rounds"}, {"db"}), Error);
}

TEST(Cli, FlagsAreShownWithTheirDefaults) {
  int rounds = 3;
  bool dry = false;
  std::string db;
  Flags flags("What");
  flags.add(flag("rounds", rounds, "how often")).add(flag("dry-run", dry)).add(flag("db", db));
  EXPECT_EQ(flags.find("rounds")->if_unset(), "3");
  EXPECT_STREQ(flags.find("rounds")->text.about, "how often");
  EXPECT_EQ(flags.find("dry-run")->if_unset(), "");
  EXPECT_EQ(flags.find("db")->if_unset(), "");
  EXPECT_EQ(flags.find("seed"), nullptr);
}

}  // namespace
}  // namespace moegate::test
