// SPDX-License-Identifier: Apache-2.0
// moegate man: the man page, which `cmake --install` puts where man finds it; with `table`
// README.md's table of verbs and flags.
#include "harness/base/error.h"
#include "harness/commands/commands.h"
#include "harness/commands/man_page.h"
#include "harness/values/provenance.h"

namespace moegate {

int cmd_man(const std::vector<std::string>& args) {
  const bool table = args == std::vector<std::string>{"table"};
  if (!args.empty() && !table) {
    usage_error("man: unexpected '{}'; use nothing, or table", args[0]);
  }
  std::vector<DescribedVerb> described;
  for (const Verb& verb : verbs()) described.push_back({&verb, flags_of(verb)});
  fmt::print("{}", table ? reference(described) : man_page(provenance().version, described));
  return 0;
}

}  // namespace moegate
