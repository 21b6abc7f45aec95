// SPDX-License-Identifier: Apache-2.0
// The commands and flags as people see them. Of a command: what it is for, how it is typed, two
// examples, its most used flags, its function.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/values/option.h"

namespace moegate {

struct Command {
  const char* name;
  int (*run)(const std::vector<std::string>& args) = nullptr;
};

struct Verb : Command {
  const char* about;
  std::vector<const char*> usages;  // behind "moegate NAME"
  std::array<const char*, 2> examples;
  std::vector<const char*> common;  // flags that -h shows
};

std::span<const Verb> verbs();
/// Null where there is none of this name.
const Verb* find_verb(std::string_view name);

// Every flag of the program, each with one meaning (README.md has three exceptions). The flags of a
// run stand in the tables of its options (campaign/run_options.h, worker/worker.h); all
// others stand in flag_table.cc.
// Also what earlier spellings became.

/// All flags, by name.
const std::vector<FlagText>& all_flags();
/// Throws Error(internal) for a flag that the table does not have.
const FlagText& flag_text(std::string_view name);
/// Null where the table has no such flag.
const FlagText* find_flag(std::string_view name);

/// A sentence: what to type instead of a flag (no dashes) of another name now; empty for others.
std::string moved_flag(std::string_view command, std::string_view flag);
/// The same of a command.
std::string moved_command(std::string_view command);

}  // namespace moegate
