// SPDX-License-Identifier: Apache-2.0
// Turns a failed CUDA runtime call into an Error. For files that include the CUDA runtime only.
#pragma once

#include <cuda_runtime_api.h>

#include "harness/base/error.h"

namespace moegate {

/// Throws Error(environment) naming `what` and CUDA's own words when `status` is a failure.
inline void check_cuda(cudaError_t status, const char* what, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a fault that is not sticky must not surface again at an unrelated call
  throw Error(Exit::environment,
              fmt::format("CUDA: {} ({}) at {} [{}:{}]", cudaGetErrorString(status),
                          cudaGetErrorName(status), what, file, line));
}

}  // namespace moegate

#define MOEGATE_CUDA_CHECK(call) ::moegate::check_cuda((call), #call, __FILE__, __LINE__)
