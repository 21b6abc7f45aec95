// SPDX-License-Identifier: Apache-2.0
// The few instructions of a thread-block cluster that kernels here need (sm_90): a start barrier,
// and stores to the shared memory of other blocks that a barrier there counts in. That spares the
// second cluster-wide barrier, whose release waits for every store of the thread (MEMBAR.ALL.GPU).
#pragma once

#include <cstdint>

#include "kernels/cuda/barrier.cuh"

namespace moegate::cuda {

/// The two halves of the cluster's barrier; every thread of every block takes part. Relaxed: it
/// orders no ordinary memory, only says that all blocks run and have prepared their inboxes.
/// A launch without clusters makes a __syncthreads() of the wait. So what a thread does before it
/// must not depend on what others do behind it.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// This block's place in its cluster.
__device__ inline int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// What an address of this block's shared memory is in block `rank`'s, for the whole cluster.
__device__ inline uint32_t shared_address_of(uint32_t address, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

/// Arrives at a barrier of any block (shared_address_of): what this thread has read may be
/// overwritten. Orders none of its stores for another block, which would be a MEMBAR.ALL.GPU.
__device__ inline void arrive_at(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// One thread prepares its block's barrier, before cluster_arrive: it opens once `bytes` have come.
__device__ inline void prepare_inbox(uint64_t* barrier, int bytes) {
  init_barrier(barrier, 1);
  arrive_expecting(barrier, bytes);
  fence_barrier_init();
}

/// Stores `value` to the place of `slot` in block `rank`, and counts it into the barrier there.
__device__ inline void send(uint64_t* slot, uint64_t* barrier, int rank, uint64_t value) {
  asm volatile(
      "{\n"
      ".reg .b32 to, counter;\n"
      "mapa.shared::cluster.u32 to, %0, %2;\n"
      "mapa.shared::cluster.u32 counter, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %3, [counter];\n"
      "}\n" ::"r"(shared_address(slot)),
      "r"(shared_address(barrier)), "r"(rank), "l"(value)
      : "memory");
}

/// The same with 16 bytes.
__device__ inline void send(float4* slot, uint64_t* barrier, int rank, float4 value) {
  asm volatile(
      "{\n"
      ".reg .b32 to, counter;\n"
      "mapa.shared::cluster.u32 to, %0, %2;\n"
      "mapa.shared::cluster.u32 counter, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [to], {%3, %4, %5, %6}, "
      "[counter];\n"
      "}\n" ::"r"(shared_address(slot)),
      "r"(shared_address(barrier)), "r"(rank), "f"(value.x), "f"(value.y), "f"(value.z),
      "f"(value.w)
      : "memory");
}

__device__ inline void send(int4* slot, uint64_t* barrier, int rank, int4 value) {
  send(reinterpret_cast<float4*>(slot), barrier, rank,
       float4{__int_as_float(value.x), __int_as_float(value.y), __int_as_float(value.z),
              __int_as_float(value.w)});
}

/// The same, to addresses in the other block (shared_address_of), which several stores share.
__device__ inline void send(uint32_t to, uint32_t counter, float4 value) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, "
      "[%1];" ::"r"(to),
      "r"(counter), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
      : "memory");
}

/// Waits until everything expected has come; what was sent is visible then. Not by wait_barrier(),
/// whose parity is a register: with a constant other instructions come out.
__device__ inline void wait_inbox(uint64_t* barrier) {
  uint32_t open = 0;
  while (open == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(open)
        : "r"(shared_address(barrier))
        : "memory");
  }
}

}  // namespace moegate::cuda
