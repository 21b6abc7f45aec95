// SPDX-License-Identifier: Apache-2.0
// What a command's --help says, as data: shell completion and the man page have no other source.
#pragma once

#include <string>
#include <vector>

namespace moegate {

struct Command;

struct HelpFlag {
  std::string name;      // "--suite"
  std::string value;     // what its value is called: "S"; empty: it takes none
  std::string if_unset;  // the value that it has then; empty: none is shown
  std::string about;     // on one line

  bool operator==(const HelpFlag&) const = default;
};

struct HelpGroup {
  std::string title;  // "Which cases, where"
  std::vector<HelpFlag> flags;

  bool operator==(const HelpGroup&) const = default;
};

struct HelpText {
  std::vector<std::string> usages;  // "moegate run --suite S [options]"
  std::vector<HelpGroup> groups;

  /// Null where there is none of this name.
  const HelpFlag* find(const std::string& name) const;
};

/// Reads what parse() of cli.h prints for --help. Throws Error(internal) for a text without the line
/// of --help, which shows in which column descriptions begin.
HelpText parse_help(const std::string& text);

/// What the command prints for --help.
HelpText help_of(const Command& command);

}  // namespace moegate
