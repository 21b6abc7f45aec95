// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/pc_cupti.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace moegate {
namespace {

const char* pc_remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "; allow profiling for users (driver option NVreg_RestrictProfilingToAdminUsers=0), "
             "or run as root";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "; the hypervisor has to allow profiling on this virtual GPU";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_OPERATION:
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "; another profiler may own the GPU (Nsight, DCGM, a framework's profiler): stop it";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "; switch MIG off, or use a whole GPU";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "; confidential computing has to be off";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "; it needs a GPU of compute capability 7.5 or later that is no MIG slice";
    default:
      return "; the toolkit's CUPTI must be whole (libnvperf_host beside libcupti) and no newer "
             "than the driver";
  }
}

}  // namespace

PcCupti& pc_cupti() {
  static PcCupti* functions = new PcCupti;
  return *functions;
}

void require_pc(CUptiResult result, const std::string& what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment, fmt::format("stalls cannot be sampled: {} fails with {}{}", what,
                                             pc_cupti().text_of(result), pc_remedy(result)));
}

}  // namespace moegate
