// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/cupti_lib.h"

#include <fmt/format.h>

#include "harness/base/environment.h"
#include "harness/base/error.h"

namespace moegate {
namespace {

/// What people meet has one of its own.
const char* remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "allow profiling for users (driver option NVreg_RestrictProfilingToAdminUsers=0), or "
             "run as root or with CAP_SYS_ADMIN";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the hypervisor has to allow profiling on this virtual GPU";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_INVALID_OPERATION:
      return "another profiler may own CUPTI or the counters (Nsight, DCGM's profiling, a "
             "framework's profiler, a debugger): stop it";
#if CUDA_VERSION >= 12050
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "switch MIG off, or use a whole GPU";
#endif
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "confidential computing has to be off";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "it needs a GPU of compute capability 7.5 or later that is no MIG slice";
    default:
      return "the toolkit's CUPTI must be whole (libnvperf_host and libnvperf_target beside "
             "libcupti) and no newer than the driver";
  }
}

}  // namespace

std::string CuptiLib::why() const {
  if (complete_) return "";
  return fmt::format(
      "{}; install the CUPTI of CUDA {}: of a toolkit, to which CUDA_HOME points, or NVIDIA's "
      "Python package {}",
      lib_.why(), CUDA_VERSION / 1000,
      CUDA_VERSION < 13000 ? "nvidia-cuda-cupti-cu12" : "nvidia-cuda-cupti");
}

std::string CuptiLib::failure(CUptiResult result, const std::string& what) const {
  const char* name = nullptr;
  get_result_string_(result, &name);
  return fmt::format("{} fails with {}; {}", what,
                     name ? name : fmt::format("CUPTI error {}", static_cast<int>(result)),
                     remedy(result));
}

#ifdef MOEGATE_HAS_RANGE_PROFILER
const CounterCupti& counter_cupti() {
  static const CounterCupti* functions = new CounterCupti;
  const std::string why = functions->why();
  if (why.empty()) return *functions;
  throw Error(Exit::environment, "counters cannot be read: " + why);
}

void require_counters(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment,
              "counters cannot be read: " + counter_cupti().failure(result, what));
}
#endif

const PcCupti& pc_cupti() {
  static const PcCupti* functions = new PcCupti;
  const std::string why = functions->why();
  if (why.empty()) return *functions;
  throw Error(Exit::environment, "stalls cannot be sampled: " + why);
}

void require_pc(CUptiResult result, const std::string& what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment, "stalls cannot be sampled: " + pc_cupti().failure(result, what));
}

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
