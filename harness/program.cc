// SPDX-License-Identifier: Apache-2.0
#include "harness/program.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "harness/error.h"
#include "harness/kernel.h"

namespace moegate {

std::string program_hash(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) usage_error("{}: cannot be read; give the path of a moegate program", path);
  std::vector<char> block(size_t{1} << 20);
  uint64_t low = 0, high = 1;  // two seeds: 64 bits are few for a name that must be unique
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    const auto bytes = static_cast<size_t>(in.gcount());
    low = hash_bytes(block.data(), bytes, low);
    high = hash_bytes(block.data(), bytes, high);
  }
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace moegate
