// SPDX-License-Identifier: Apache-2.0
// Turns a refused launch into Error(internal), and asks for dynamic shared memory beyond 48 KiB.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "harness/error.h"

namespace moegate::cuda {

inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(Exit::internal, std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
}

/// Every launch ends with this: a bad configuration shows here, a fault on the device later.
inline void check_launch(const char* kernel) {
  check_cuda(cudaGetLastError(), kernel);
}

/// A block gets more than 48 KiB of dynamic shared memory only after its kernel asked for it.
template <class KernelFunction>
void allow_shared(KernelFunction* kernel, size_t bytes) {
  constexpr size_t kWithoutAsking = 48 * 1024;
  if (bytes <= kWithoutAsking) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "shared memory");
}

}  // namespace moegate::cuda
