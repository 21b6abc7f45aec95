// SPDX-License-Identifier: Apache-2.0
// The kernel that doctor measures reading with.
#pragma once

#include <cuda_runtime.h>

namespace moegate {

/// Reads every 16-byte vector once; writes nothing.
static __global__ void read_kernel(const uint4* data, size_t vectors, unsigned* sink) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  unsigned sum = 0;
#pragma unroll 8
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const uint4 v = data[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x6d6f6567u) *sink = sum;  // never, but the compiler cannot know
}

}  // namespace moegate
