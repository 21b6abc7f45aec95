// SPDX-License-Identifier: Apache-2.0
// Prefix sums over the threads of a block, by shuffles inside the warps and one round over them.
#pragma once

#include <cstdint>

namespace moegate::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// The sum of `value` over the threads up to and including this one. Every thread of the block,
/// which is made of whole warps, calls it. `sums` [kWarp] is shared memory that nobody else uses
/// until the next barrier.
__device__ inline int scan_block(int value, int32_t* sums) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int through = value;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const int before = __shfl_up_sync(kAllLanes, through, step);
    if (lane >= step) through += before;
  }
  if (lane == kWarp - 1) sums[warp] = through;
  __syncthreads();
  return through + __reduce_add_sync(kAllLanes, lane < warp ? sums[lane] : 0);
}

}  // namespace moegate::cuda
