// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/moved_commands.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace moegate {
namespace {

TEST(MovedCommands, AreNamedWithTheirSuccessors) {
  for (const MovedCommand& moved : kMovedCommands) {
    const std::string said = moved_command(moved.old_name);
    EXPECT_EQ(said.find("'" + std::string(moved.old_name) + "' is no command"), 0u) << said;
    EXPECT_NE(said.find("`" + std::string(moved.new_command) + "`"), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(MovedCommands, WhatNeverMovedIsNotNamed) {
  EXPECT_EQ(moved_command("run"), "");
  EXPECT_EQ(moved_command(""), "");
}

TEST(MovedCommands, ModulesOfPythonThatTheyNameAreThere) {
  const std::string mark = "python3 -m moegate.";
  for (const MovedCommand& moved : kMovedCommands) {
    const std::string command = moved.new_command;
    if (!command.starts_with(mark)) continue;
    const std::string module =
        command.substr(mark.size(), command.find(' ', mark.size()) - mark.size());
    EXPECT_TRUE(std::filesystem::exists(MOEGATE_SOURCE_DIR "/python/moegate/" + module + ".py"));
  }
}

}  // namespace
}  // namespace moegate
