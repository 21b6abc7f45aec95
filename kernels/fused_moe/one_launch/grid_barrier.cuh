// SPDX-License-Identifier: Apache-2.0
// A barrier of all blocks of a grid, which have to run at the same time.
#pragma once

#include <cstdint>

namespace moegate::fused_moe::one_launch {

/// A pass adds 2^31 to `arrivals` in all, whatever the number of blocks, so that the counter needs
/// no reset, and its upper bit changes when the last block comes. No two launches may use a counter
/// at a time.
constexpr uint32_t kPass = 1u << 31;

/// What pass_grid_barrier() needs to know, asked at any time before this block arrives.
__device__ inline uint32_t look_at_grid_barrier(const uint32_t* arrivals) {
  uint32_t now;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrivals) : "memory");
  return now;
}

/// One thread of every block calls it, behind a barrier of its block and before another: what the
/// grid's threads wrote before is there for all of them afterwards.
__device__ inline void pass_grid_barrier(uint32_t* arrivals, uint32_t before) {
  const uint32_t share = blockIdx.x == 0 ? kPass - (gridDim.x - 1) : 1;
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(arrivals), "r"(share) : "memory");
  uint32_t now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrivals) : "memory");
  } while (((now ^ before) & kPass) == 0);
}

}  // namespace moegate::fused_moe::one_launch
