// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "harness/timing/elf_code.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void cubin(std::string_view bytes) {
  // A copy of that very size, so that a sanitizer sees a read beyond it.
  std::vector<uint8_t> image(bytes.begin(), bytes.end());
  const auto codes = kernel_codes(image);
  image.push_back(0);
  require(kernel_codes(image) == codes || codes.empty(), "what follows a cubin changes it");
}

}  // namespace moegate::fuzz
