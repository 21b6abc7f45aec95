// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/other_profiler.h"

#include <fmt/format.h>

#include "harness/base/environment.h"

namespace moegate {

std::string other_profiler() {
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    const std::string value = environment(variable);
    if (!value.empty()) {
      return fmt::format(
          "{}={} says that another profiler owns CUPTI: unset it, or start without "
          "the profiler (use --profile under one)",
          variable, value);
    }
  }
  const std::string preload = environment("LD_PRELOAD");
  for (const char* tool : {"nsight", "nsys", "sanitizer", "Injection", "injection"}) {
    if (preload.find(tool) != std::string::npos) {
      return fmt::format("LD_PRELOAD={} names a profiler ({}): CUPTI serves one tool at a time",
                         preload, tool);
    }
  }
  return "";
}

}  // namespace moegate
