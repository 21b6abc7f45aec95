// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/other_profiler.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace moegate {

std::string other_profiler() {
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    const char* value = std::getenv(variable);
    if (value && *value) {
      return fmt::format(
          "{}={} says that another profiler owns CUPTI: unset it, or start without "
          "the profiler (use --profile under one)",
          variable, value);
    }
  }
  const char* preload = std::getenv("LD_PRELOAD");
  for (const char* tool : {"nsight", "nsys", "sanitizer", "Injection", "injection"}) {
    if (preload && std::string_view(preload).find(tool) != std::string_view::npos) {
      return fmt::format("LD_PRELOAD={} names a profiler ({}): CUPTI serves one tool at a time",
                         preload, tool);
    }
  }
  return "";
}

}  // namespace moegate
