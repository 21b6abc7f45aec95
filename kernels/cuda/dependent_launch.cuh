// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch (sm_90): the next kernel of a stream is set up, and its blocks take
// SMs as they become free, while the blocks of the one before still run. Code for older chips could
// not wait, also where it runs on a newer one.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "starts kernels early: let the source say '// chip: sm_90 (...)'"
#endif

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::cuda {

/// When a step of a chain starts.
enum class Start {
  after,  // the kernel before it in the stream has ended, as for any launch
  early   // when that lets go of SMs; the step calls wait_for_dependency()
};

/// In the kernel before: as soon as every block has called this or ended, the next may start.
__device__ inline void allow_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// In the next kernel: until all blocks of the one before have ended and what they wrote is there.
/// Every block of every kernel of a chain calls it, with work or without, or a later kernel might
/// miss what came before. After a plain launch nothing is waited for.
__device__ inline void wait_for_dependency() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Of a launch that may start while the one before runs.
inline cudaLaunchAttribute early_start() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

/// Launches a kernel, which must call wait_for_dependency() if it starts `early` (Start). `shared`:
/// bytes of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_early_if(bool early, void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                     size_t shared, void* stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute = early_start();
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), "dependent kernel");
}
template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                      size_t shared, void* stream, const Arguments&... arguments) {
  launch_early_if(true, kernel, blocks, threads, shared, stream, arguments...);
}
template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                      void* stream, const Arguments&... arguments) {
  launch_dependent(kernel, blocks, threads, size_t{0}, stream, arguments...);
}

}  // namespace moegate::cuda
