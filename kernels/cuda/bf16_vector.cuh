// SPDX-License-Identifier: Apache-2.0
// Eight bf16 values as one load of 16 bytes brings them.
#pragma once

#include "harness/kernel.h"

namespace moegate::cuda {

/// In the order of memory.
__device__ inline void widen(const uint4& packed, float (&values)[8]) {
  const uint32_t words[] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = bits_float(words[i] << 16);
    values[2 * i + 1] = bits_float(words[i] & 0xffff0000u);
  }
}

}  // namespace moegate::cuda
