// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "harness/base/test_fixture.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

std::filesystem::path own_file(const std::string& name) {
  static const test::ScratchFolder folder;
  return folder / name;
}

std::filesystem::path write_own_file(const std::string& name, std::string_view content) {
  const std::filesystem::path path = own_file(name);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) throw std::runtime_error(path.string() + " cannot be written");
  return path;
}

}  // namespace moegate::fuzz
