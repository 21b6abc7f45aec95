// SPDX-License-Identifier: Apache-2.0
// What a launch needs of the CUDA runtime: its stream, dynamic shared memory beyond 48 KiB, and
// Error(internal) where it is refused.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "harness/kernel/cuda_check.h"
#include "harness/kernel/kernel.h"

namespace moegate::cuda {

inline cudaStream_t stream_of(const Launch& where) {
  return static_cast<cudaStream_t>(where.stream);
}

inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // else it would be found at the next launch, which may be another's
  if (status == cudaErrorNoKernelImageForDevice) throw NoCodeForDevice();
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
