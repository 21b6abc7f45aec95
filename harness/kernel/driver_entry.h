// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace moegate {

/// A function of the driver, asked of it at run time: the program also starts without one. Null
/// where the driver has none.
template <class Function>
Function* of_driver(const char* name, [[maybe_unused]] unsigned int version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else  // as the toolkit's own headers declare it
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function*>(function)
             : nullptr;
}

}  // namespace moegate
