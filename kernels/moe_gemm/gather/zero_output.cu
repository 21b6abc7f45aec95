// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/gather/zero_output.h"

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::moe_gemm::gather {
namespace {

using namespace cuda;

constexpr int kThreads = 256;

/// A thread per 16 bytes.
__global__ void __launch_bounds__(kThreads) zero_kernel(uint4* out, int64_t vectors) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < vectors) out[i] = make_uint4(0, 0, 0, 0);
}

}  // namespace

void zero_output(uint16_t* out, int64_t elements, void* stream) {
  const int64_t vectors = elements / 8;
  const auto blocks = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
  zero_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<uint4*>(out), vectors);
  check_launch("zero_kernel");
}

}  // namespace moegate::moe_gemm::gather
