// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals (sm_80; used with sm_90's copies).
#pragma once

#include <cstdint>

namespace moegate::cuda {

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// In one lane of a warp that calls it together, always the same one. The compiler sees that it is
/// one: what takes uniform registers, as copies and barriers do, else goes through a loop over
/// lanes, some 80 cycles each, also where `threadIdx.x == 0` leaves but one. Who keeps the answer
/// asks before any other condition: of one kept from behind a branch the compiler forgets it.
__device__ inline bool elected() {
  uint32_t one;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(one));
  return one != 0;
}

/// A barrier whose phase is complete after `arrivals`.
__device__ inline void init_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
/// The same of several that follow each other, by one lane of warp `warp`.
template <int kCount>
__device__ void init_barriers(int warp, uint64_t* barriers, int arrivals) {
  if (threadIdx.x / 32 != warp || !elected()) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) init_barrier(barriers + i, arrivals);
}
template <int kCount>
__device__ void init_barriers(int warp, uint64_t (&barriers)[kCount], int arrivals) {
  init_barriers<kCount>(warp, &barriers[0], arrivals);
}
/// What the thread wrote before is visible to whoever waits.
__device__ inline void arrive_barrier(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void arrive_barrier(uint64_t* barrier) {
  arrive_barrier(shared_address(barrier));
}
/// Once for the warp, which calls it together: what its lanes did before counts as done.
__device__ inline void arrive_warp(uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive_barrier(barrier);
}
__device__ inline void arrive_warp(uint64_t* barrier) {
  arrive_warp(shared_address(barrier));
}
/// Makes initialised barriers visible to the copy engine and to other blocks of the cluster.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// One arrival, after which the phase also waits for so many bytes.
__device__ inline void arrive_expecting(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void arrive_expecting(uint64_t* barrier, int bytes) {
  arrive_expecting(shared_address(barrier), bytes);
}
/// Waits until the barrier's phase of this parity is complete.
__device__ inline void wait_barrier(uint32_t barrier, uint32_t parity) {
  uint32_t open = 0;
  while (open == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(open)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}
__device__ inline void wait_barrier(uint64_t* barrier, uint32_t parity) {
  wait_barrier(shared_address(barrier), parity);
}

}  // namespace moegate::cuda
