// SPDX-License-Identifier: Apache-2.0
// Two warpgroups take turns at the tensor cores: while the products of one run, the other adds its
// own up.
#pragma once

#include "kernels/cuda/named_barriers.cuh"

namespace moegate::cuda {

/// Warpgroup 1 passes once at the start: the first turn is warpgroup 0's.
__device__ inline void wait_turn(int warpgroup) {
  sync_barrier<256>(kTurnBarrier + warpgroup);
}
__device__ inline void pass_turn(int warpgroup) {
  arrive_at_barrier<256>(kTurnBarrier + 1 - warpgroup);
}

}  // namespace moegate::cuda
