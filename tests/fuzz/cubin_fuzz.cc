// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "harness/timing/elf_file.h"
#include "harness/timing/gpu_code.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void cubin(std::string_view bytes) {
  // A copy of that very size, so that a sanitizer sees a read beyond it.
  std::vector<uint8_t> image(bytes.begin(), bytes.end());
  const auto codes = kernel_codes(image);
  const size_t kernels = read_cubin(image).kernels.size();
  const std::string program(bytes);
  accepted({Exit::usage, Exit::environment}, [&] { read_gpu_code(program, "input", 90); });
  image.push_back(0);
  require(kernel_codes(image) == codes || codes.empty(), "what follows a cubin changes it");
  require(read_cubin(image).kernels.size() == kernels || kernels == 0,
          "what follows a cubin changes its kernels");
}

}  // namespace moegate::fuzz
