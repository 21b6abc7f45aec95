// SPDX-License-Identifier: Apache-2.0
// The named barriers of a block, of which the hardware has 16, and who uses which: one list, so
// that two ideas in one kernel cannot meet at the same barrier unawares. A new user gets new
// numbers here.
#pragma once

namespace moegate::cuda {

enum NamedBarrier : int {
  kBlockBarrier = 0,     // __syncthreads()
  kStagingBarrier = 1,   // who stages output together: all of them, or warpgroup w at 1 + w, w < 4
  kTurnBarrier = 5,      // turns.cuh: warpgroup w waits for its turn at 5 + w, w < 2
  kConsumerBarrier = 7,  // all who multiply, between two stages of a layer (one_launch)
  kLogitsBarrier = 8,    // who stores logits, and who fetched their biases (split_k4)
  // 9 to 15 are free.
};

/// Waits until kThreads threads, this one included, have come to barrier `id` by either function.
template <int kThreads>
__device__ inline void sync_barrier(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}
/// Comes to the barrier without waiting there.
template <int kThreads>
__device__ inline void arrive_at_barrier(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}

}  // namespace moegate::cuda
