// SPDX-License-Identifier: Apache-2.0
// Two warpgroups take turns at the tensor cores: while the products of one run, the other adds its
// own up.
#pragma once

namespace moegate::cuda {

/// Barriers 3 and 4. Warpgroup 1 passes once at the start: the first turn is warpgroup 0's.
__device__ inline void wait_turn(int warpgroup) {
  asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory");
}
__device__ inline void pass_turn(int warpgroup) {
  asm volatile("bar.arrive %0, 256;" ::"r"(4 - warpgroup) : "memory");
}

}  // namespace moegate::cuda
