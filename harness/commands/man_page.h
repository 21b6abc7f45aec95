// SPDX-License-Identifier: Apache-2.0
// The man page as roff, and README's table of verbs and flags.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/cli.h"

namespace moegate {

struct DescribedVerb {
  const Verb* verb;
  Flags flags;
};

/// The page of templates/man/ with a section for each verb, and the examples. A group of flags that
/// a verb above has too is not listed again, but named with that verb.
std::string man_page(const std::string& version, const std::vector<DescribedVerb>& verbs);

/// A text for roff: shown as it is, wherever it stands.
std::string roff_escaped(const std::string& text);

/// README.md's table of verbs and flags, as markdown.
std::string reference(const std::vector<DescribedVerb>& verbs);

}  // namespace moegate
