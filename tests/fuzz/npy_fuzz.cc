// SPDX-License-Identifier: Apache-2.0
#include "harness/base/formats.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void npy(std::string_view bytes) {
  const std::string path = write_own_file("input.npy", bytes).string();
  IntTable table;
  if (!accepted({Exit::usage}, [&] { table = read_npy(path); })) return;
  require(table.rows >= 0 && table.columns >= 0, "a negative extent");
  require(table.values.size() <= bytes.size(), "more numbers than bytes");
  require(table.values.size() == static_cast<size_t>(table.rows * table.columns),
          "another number of numbers than its shape says");
}

}  // namespace moegate::fuzz
