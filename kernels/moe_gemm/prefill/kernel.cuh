// SPDX-License-Identifier: Apache-2.0
// The kernel of prefill: who does what.
#pragma once

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/moe_gemm/prefill/copy.cuh"
#include "kernels/moe_gemm/prefill/multiply.cuh"
#include "kernels/moe_gemm/prefill/write.cuh"

namespace moegate::moe_gemm::prefill {

template <Order kOrder, int kCluster, class Out>
__device__ void prepare_barriers(Shared<Out>& shared) {
  using R = Roles<kOrder>;
  init_barriers(0, shared.full, R::kGatherers + R::kCopiers + 1);
  init_barriers(1, shared.empty, R::kMultipliers / 32 * kCluster);
  init_barriers(2, shared.staged_full, R::kMultipliers / 32 / 2);
  init_barriers(3, shared.staged_empty, 1);
  fence_barrier_init();
  __syncthreads();
}

/// No block of a cluster copies into, or arrives at, one that does not run.
template <int kCluster>
__device__ void meet_cluster() {
  if constexpr (kCluster == 1) return;
  __syncwarp();
  cluster_arrive();
  cluster_wait();
}

template <Order kOrder, int kCluster, class Out>
__global__ void __launch_bounds__(Roles<kOrder>::kThreads, 1)
    prefill_kernel(const __grid_constant__ Maps maps, const __grid_constant__ MoeGemmArgs args,
                   const __grid_constant__ Out out) {
  using R = Roles<kOrder>;
  extern __shared__ __align__(1024) uint8_t raw[];
  auto& shared = aligned_shared<Shared<Out>>(raw);
  allow_dependents();
  prepare_barriers<kOrder, kCluster>(shared);
  meet_cluster<kCluster>();
  wait_for_dependency();
  const int warpgroup = threadIdx.x / 128;
  if (warpgroup < R::kMultipliers / 128) {
    take_registers<R::kMultiplierRegisters>();
    multiply_tiles<kOrder, kCluster>(args, out, shared);
  } else if (kOrder == Order::tokens && warpgroup < R::kFirstCopier / 128) {
    leave_registers<R::kOtherRegisters>();
    gather<kCluster>(args, shared);
  } else {
    leave_registers<R::kOtherRegisters>();
    if (threadIdx.x < R::kFirstWriter) {
      copy<kOrder, kCluster>(maps, args, out, shared);
    } else {
      write<kOrder, kCluster>(args, out, shared);
    }
  }
  meet_cluster<kCluster>();
}

}  // namespace moegate::moe_gemm::prefill
