// SPDX-License-Identifier: Apache-2.0
// What `moegate new` writes: files made from templates, and the commands that come next.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/templates.h"
#include "harness/kernel/registry.h"

namespace moegate {

struct StartOptions {
  std::string what;  // operator, variant, suite
  std::string name;
  std::string op;              // of a variant or suite
  std::string dir;             // empty: the usual one
  std::string suite = "tiny";  // has a case of the operator
  std::vector<std::string> kernels;
  bool python = false, cuda = false;

  Backend backend() const { return cuda ? Backend::cuda : Backend::host; }
};

struct StartingPoint {
  std::vector<NewFile> files;
  std::vector<std::string> notes;  // what is left to the user
  std::vector<std::string> next;   // commands
};

/// Writes nothing yet. Throws Error(usage) for a name that the registry has already, an unknown operator, a suite
/// without a case of it, and a C++ variant of an operator that is not of moegate.
StartingPoint starting_point(const StartOptions& options, const Registry& registry);

}  // namespace moegate
