// SPDX-License-Identifier: Apache-2.0
// Reads NumPy's .npy format (versions 1 to 3), as far as recorded expert ids need it: two
// dimensions, C order, little-endian int16, int32 or int64. Knows nothing of what the numbers mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moegate {

struct IntTable {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> values;  // row-major

  int64_t at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

/// Throws Error(usage) naming the path, what is wrong with it, and the remedy.
IntTable read_npy(const std::string& path);

}  // namespace moegate
