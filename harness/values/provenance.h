// SPDX-License-Identifier: Apache-2.0
// What this program was built from and with. Filled in by CMake at build time.
#pragma once

#include <string>

namespace moegate {

struct Provenance {
  std::string version;  // of moegate
  std::string git_sha;  // empty outside a repository
  bool dirty;           // uncommitted changes at build time
  std::string build;    // compiler, CUDA compiler or "no CUDA", build type
};

const Provenance& provenance();

}  // namespace moegate
