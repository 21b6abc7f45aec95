// SPDX-License-Identifier: Apache-2.0
// row_norm on a GPU: a block of 256 threads per row, a reduction through shared memory.
#include "harness/kernel/cuda_check.h"
#include "row_norm.h"

namespace row_norm {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) block_per_row_kernel(const __grid_constant__ Args a) {
  __shared__ float sums[kThreads];
  const float* x = a.x + blockIdx.x * a.hidden;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < a.hidden; i += kThreads) squares += x[i] * x[i];
  sums[threadIdx.x] = squares;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  const float factor = rsqrtf(sums[0] / static_cast<float>(a.hidden) + kEpsilon);
  for (int64_t i = threadIdx.x; i < a.hidden; i += kThreads) {
    a.out[blockIdx.x * a.hidden + i] = x[i] * factor * a.weight[i];
  }
}

void launch(RowNorm& problem, const moegate::Launch& where) {
  const Args a = problem.args();
  block_per_row_kernel<<<static_cast<unsigned>(a.tokens), kThreads, 0,
                         static_cast<cudaStream_t>(where.stream)>>>(a);
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

const moegate::Kernel<RowNorm> kernel({.name = "block_per_row",
                                       .backend = moegate::Backend::cuda,
                                       .help = "a block of 256 threads per row",
                                       .launch = launch});

}  // namespace
}  // namespace row_norm
