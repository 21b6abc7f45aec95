// SPDX-License-Identifier: Apache-2.0
// The few instructions of a thread-block cluster that topk_sort needs (sm_90).
#pragma once

#include <cstdint>

namespace moegate::routing {

__device__ inline int cluster_size() {
  uint32_t n;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
  return static_cast<int>(n);
}

/// The two halves of the cluster's barrier; every thread of every block takes part. What a thread
/// wrote before arriving, remote shared memory included, is seen by all after waiting.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Stores a byte at the same place of the shared memory of block `rank` of the cluster.
__device__ inline void store_to_peer(uint8_t* mine, int rank, int value) {
  const auto local = static_cast<uint32_t>(__cvta_generic_to_shared(mine));
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.u8 [remote], %2;\n"
      "}\n" ::"r"(local),
      "r"(rank), "r"(value)
      : "memory");
}

}  // namespace moegate::routing
