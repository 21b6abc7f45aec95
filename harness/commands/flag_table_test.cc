// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/verbs.h"

namespace moegate::test {
namespace {

TEST(FlagTable, AFlagHasOneRow) {
  std::set<std::string> names;
  for (const FlagText& flag : all_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_NE(std::string(flag.about), "") << flag.name;
    EXPECT_EQ(flag.kind == ValueKind::none, std::string(flag.value).empty()) << flag.name;
    EXPECT_EQ(flag.kind == ValueKind::choice, !std::string(flag.choices).empty()) << flag.name;
  }
  EXPECT_LE(names.size(), 80u);
  EXPECT_LE(verbs().size(), 16u);
}

TEST(FlagTable, WhatAVerbShowsIsInTheTable) {
  for (const Verb& verb : verbs()) {
    for (const char* flag : verb.common) EXPECT_NE(find_flag(flag), nullptr) << verb.name << flag;
    for (const char* example : verb.examples) {
      EXPECT_TRUE(std::string(example).starts_with(std::string("moegate ") + verb.name)) << example;
    }
  }
  EXPECT_THROW(flag_text("no-such"), Error);
}

TEST(FlagTable, OldSpellingsNameTheNewOne) {
  EXPECT_EQ(moved_flag("run", "kernel"), "--kernel is no flag any more; use `--variant RE`");
  EXPECT_EQ(moved_flag("bisect", "good"), "--good is no flag any more; use `--base COMMIT`");
  EXPECT_EQ(moved_flag("run", "benchmark-out"),
            "--benchmark-out is no flag any more; use `--out FILE`");
  EXPECT_EQ(moved_flag("run", "good"), "");
  EXPECT_EQ(moved_flag("run", "suite"), "");
  for (const char* verb :
       {"compare", "explain", "history", "resources", "waivers", "merge", "prune", "repro"}) {
    const std::string said = moved_command(verb);
    EXPECT_NE(said.find("use `moegate "), std::string::npos) << said;
    EXPECT_EQ(find_verb(verb), nullptr);
  }
  EXPECT_EQ(moved_command("run"), "");
  EXPECT_EQ(moved_command(""), "");
}

TEST(FlagTable, ModulesOfPythonThatAreNamedAreThere) {
  const std::string mark = "python3 -m moegate.";
  for (const char* verb : {"export", "import"}) {
    const std::string said = moved_command(verb);
    const size_t at = said.find(mark);
    ASSERT_NE(at, std::string::npos) << said;
    const std::string module =
        said.substr(at + mark.size(), said.find(' ', at + mark.size()) - at - mark.size());
    EXPECT_TRUE(std::filesystem::exists(MOEGATE_SOURCE_DIR "/python/moegate/" + module + ".py"));
  }
}

}  // namespace
}  // namespace moegate::test
