// SPDX-License-Identifier: Apache-2.0
// The variables of the environment that the program reads, as data: for the man page.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// Several that are read together have one entry: "COLUMNS, NO_COLOR". Words in backquotes are typed
/// as they are.
struct Variable {
  std::string name, about;
};

/// In the order of the table in README.md, which also says where each is read.
const std::vector<Variable>& variables();

}  // namespace moegate
