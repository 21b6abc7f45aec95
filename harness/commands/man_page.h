// SPDX-License-Identifier: Apache-2.0
// The man page, as roff, from the tables of verbs, flags and variables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/commands/cli.h"
#include "harness/commands/variables.h"

namespace moegate {

struct DescribedVerb {
  const Verb* verb;
  Flags flags;
};

/// A section for each verb. A group of flags that a verb above has too is not listed again, but named with that verb.
/// Then the examples, the exit codes, the files and the variables of the environment.
std::string man_page(const std::string& version, const std::vector<DescribedVerb>& verbs,
                     const std::vector<Variable>& variables);

/// Exit codes with their causes.
const std::vector<std::pair<int, const char*>>& exit_causes();

/// A text for roff: shown as it is, wherever it stands.
std::string roff_escaped(const std::string& text);

/// README.md's table of verbs and flags, as markdown.
std::string reference(const std::vector<DescribedVerb>& verbs);

}  // namespace moegate
