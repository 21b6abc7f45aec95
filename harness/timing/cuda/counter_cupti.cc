// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/counter_cupti.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace moegate {
namespace {

const char* remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "; allow profiling for users (driver option NVreg_RestrictProfilingToAdminUsers=0), "
             "or run with CAP_SYS_ADMIN";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "; another profiler has the counters (Nsight, DCGM's profiling): stop it";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "; a MIG slice cannot be counted: use a whole GPU";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "; another profiler owns CUPTI: stop it";
    case CUPTI_ERROR_UNKNOWN:
      return "; libnvperf_host, libnvperf_target of the CUDA toolkit may be missing beside "
             "libcupti";
    default:
      return "";
  }
}

}  // namespace

const CounterCupti& counter_cupti() {
  static const CounterCupti* functions = new CounterCupti;
  const std::string why = functions->why();
  if (why.empty()) return *functions;
  throw Error(Exit::environment,
              "counters need CUPTI 13: " + why + " (install the CUDA toolkit's CUPTI)");
}

void require_counters(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment, fmt::format("counters: {} fails with {}{}", what,
                                             counter_cupti().text_of(result), remedy(result)));
}

}  // namespace moegate
