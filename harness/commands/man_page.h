// SPDX-License-Identifier: Apache-2.0
// The man page, as roff, from what --help says and the list of variables.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/help_text.h"
#include "harness/commands/variables.h"

namespace moegate {

struct CommandHelp {
  std::string name, about;
  HelpText help;
};

/// A section for each command. A group of flags that a command above has too is not listed again,
/// but named with that command. At the end the variables of the environment.
std::string man_page(const std::string& version, const std::vector<CommandHelp>& commands,
                     const std::vector<Variable>& variables);

/// A text for roff: shown as it is, wherever it stands.
std::string roff_escaped(const std::string& text);

}  // namespace moegate
