// SPDX-License-Identifier: Apache-2.0
// Repeats one stored row: same case, variant, seed and conditions; or says how one of NVIDIA's profilers records it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moegate {

struct RepeatRow {
  int64_t row = 0;
  std::string db;
  /// The row's kernels from elsewhere, named once more, since a store may be anybody's.
  std::vector<std::string> modules;
  std::string under;  // "ncu", "nsys": print the command that records the row, and stop
  bool runs = true;   // else the command is printed only
};

/// Prints the command and runs it, which adds a run to the store that is never its latest. Returns the exit code.
/// Throws Error(usage) for a row that the store does not have or this program cannot repeat.
int repeat_row(const RepeatRow& repeat);

}  // namespace moegate
