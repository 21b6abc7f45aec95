// SPDX-License-Identifier: Apache-2.0
// Loads of what a launch reads once.
#pragma once

#include <cstdint>

namespace moegate::cuda {

/// 16 bytes that no other load will want: kept out of L1.
__device__ inline uint4 load_streaming(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

}  // namespace moegate::cuda
