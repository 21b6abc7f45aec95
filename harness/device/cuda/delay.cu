// SPDX-License-Identifier: Apache-2.0
#include "harness/device/cuda/delay.h"

#include <cuda_runtime.h>

#include "harness/base/error.h"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

constexpr float kStart = 0.5f;  // the chain stays there

/// Multiply-adds that each wait for the one before: time that no scheduler can hide. The start is a
/// parameter and the end is looked at, or ptxas computes the result and drops the chain.
__device__ float chain(float x, int64_t steps) {
#pragma unroll 1
  for (int64_t i = 0; i < steps; ++i) x = fmaf(x, 0.5f, 0.25f);
  return x;
}

__global__ void delay(float start, int64_t steps, int* never) {
  if (chain(start, steps) > 2) *never = 1;
}

__global__ void time_delay(float start, int64_t steps, int64_t* cycles) {
  const int64_t began = clock64();
  const float end = chain(start, steps);
  *cycles = end > 2 ? 0 : clock64() - began;
}

__global__ void scale(void* data, DType dtype, int64_t elements, float factor) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    write_float(dtype, data, i, factor * read_float(dtype, data, i));
  }
}

double measure_cycles_per_step() {
  constexpr int64_t kSteps = 100'000;
  int64_t* cycles = nullptr;
  int64_t taken = 0;
  MOEGATE_CUDA_CHECK(cudaMalloc(&cycles, sizeof *cycles));
  for (int i = 0; i < 2; ++i)
    time_delay<<<1, 1>>>(kStart, kSteps, cycles);  // the first fetches code
  MOEGATE_CUDA_CHECK(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
  MOEGATE_CUDA_CHECK(cudaFree(cycles));
  const double per_step = static_cast<double>(taken) / kSteps;
  if (!(per_step >= 1)) {
    give_up(Exit::environment, "canary: a delay step takes {} cycles, so no delay can be set",
            per_step);
  }
  return per_step;
}

}  // namespace

void launch_delay(void* stream, int64_t steps) {
  delay<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(kStart, steps, nullptr);
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

double delay_cycles_per_step() {
  static const double cycles = measure_cycles_per_step();
  return cycles;
}

void launch_scale(void* stream, void* data, DType dtype, int64_t elements, float factor) {
  constexpr int kBlocks = 264, kThreads = 256;
  scale<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(data, dtype, elements, factor);
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

}  // namespace moegate
