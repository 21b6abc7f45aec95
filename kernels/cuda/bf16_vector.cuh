// SPDX-License-Identifier: Apache-2.0
// bf16 values as loads and stores of 16 bytes have them.
#pragma once

#include <cuda_bf16.h>

#include "harness/kernel/kernel.h"

namespace moegate::cuda {

/// The eight values of 16 bytes, in the order of memory.
__device__ inline void widen(const uint4& packed, float (&values)[8]) {
  const uint32_t words[] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = bits_float(words[i] << 16);
    values[2 * i + 1] = bits_float(words[i] & 0xffff0000u);
  }
}

/// Two values, rounded; `low` comes first in memory.
__device__ inline uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

}  // namespace moegate::cuda
