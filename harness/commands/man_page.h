// SPDX-License-Identifier: Apache-2.0
// The man page as roff, README's table of verbs and flags, and the variables of the environment
// that the program reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/commands/cli.h"

namespace moegate {

/// Several that are read together have one entry: "COLUMNS, NO_COLOR". Words in backquotes are
/// typed as they are.
struct Variable {
  std::string name, about;
};

struct DescribedVerb {
  const Verb* verb;
  Flags flags;
};

/// A section for each verb. A group of flags that a verb above has too is not listed again,
/// but named with that verb. Then the examples, the exit codes, the files and the variables of
/// the environment.
std::string man_page(const std::string& version, const std::vector<DescribedVerb>& verbs,
                     const std::vector<Variable>& variables);

const std::vector<std::pair<int, const char*>>& exit_causes();

/// A text for roff: shown as it is, wherever it stands.
std::string roff_escaped(const std::string& text);

/// README.md's table of verbs and flags, as markdown.
std::string reference(const std::vector<DescribedVerb>& verbs);

/// In the order of the table in README.md, which also says where each is read.
const std::vector<Variable>& variables();

}  // namespace moegate
