// SPDX-License-Identifier: Apache-2.0
// moegate man: the man page. `cmake --install` puts it where man finds it.
#include "harness/base/error.h"
#include "harness/commands/commands.h"
#include "harness/commands/man_page.h"
#include "harness/values/provenance.h"

namespace moegate {

int cmd_man(const std::vector<std::string>& args, std::span<const Command> commands) {
  if (!args.empty()) usage_error("moegate man: unexpected '{}'; it takes no arguments", args[0]);
  std::vector<CommandHelp> helps;
  for (const Command& command : commands) {
    if (command.help != nullptr) {
      helps.push_back({command.name, command.help, help_of(command)});
    }
  }
  fmt::print("{}", man_page(provenance().version, helps, variables()));
  return 0;
}

}  // namespace moegate
