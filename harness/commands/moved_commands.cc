// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/moved_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace moegate {

std::string moved_command(const std::string& name) {
  const auto moved = std::ranges::find(kMovedCommands, name, &MovedCommand::old_name);
  if (moved == kMovedCommands.end()) return "";
  return fmt::format(
      "'{}' is no command of this program any more; run `{}` with the same arguments, and with "
      "PYTHONPATH=python in a clone or an installed folder",
      name, moved->new_command);
}

}  // namespace moegate
