// SPDX-License-Identifier: Apache-2.0
// Commands that earlier versions had, and what has taken their place: whoever types an old one is told the new one.
#pragma once

#include <array>
#include <string>

namespace moegate {

struct MovedCommand {
  const char* old_name;
  const char* new_command;  // which takes the same arguments
};

inline constexpr auto kMovedCommands = std::to_array<MovedCommand>({
    {"export", "python3 -m moegate.flashinfer export"},
    {"import", "python3 -m moegate.flashinfer import"},
});

/// One sentence that names the new command; empty for a name that has not moved.
std::string moved_command(const std::string& name);

}  // namespace moegate
