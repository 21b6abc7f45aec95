// SPDX-License-Identifier: Apache-2.0
// What --base and --head of `moegate ab` say of a side, and the environment that its workers get.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/commands/cli.h"
#include "harness/night/ab.h"

namespace moegate {

/// Reads "python=PATH", "program=PATH", "module=FILE", "variant=V", "label=L", a variable
/// ("NAME=TEXT"; "NAME=": without it), or a commit. `name`: base or head. Throws Error(usage).
void read_side(const char* name, const std::vector<std::string>& words, AbSide& side,
               std::string& commit);

/// Where a side states an interpreter or variables, gives both the variables that their workers
/// start with: nothing that leads one interpreter to another one's packages, the libraries of its
/// own packages, and caches of compilers in `out`/jit/, kept for each environment. Throws
/// Error(usage) for an interpreter that cannot be used, and for two sides that are the same.
void use_environments(AbOptions& ab, const std::filesystem::path& out, bool measure_identical);

/// The words of a command without the texts of variables that are secrets.
Args without_secrets(Args words);

}  // namespace moegate
