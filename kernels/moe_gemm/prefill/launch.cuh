// SPDX-License-Identifier: Apache-2.0
// The launch of prefill's kernel, whatever becomes of its sums.
#pragma once

#include <algorithm>

#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/prefill/kernel.cuh"
#include "kernels/moe_gemm/prefill/prefill.h"

namespace moegate::moe_gemm::prefill {

template <Order kOrder, int kCluster, class Out>
void launch_kernel(const MoeGemmArgs& args, const Out& out, Start start, const Launch& where) {
  constexpr size_t kBytes = kSharedBytes<Shared<Out>>;
  constexpr int kThreads = Roles<kOrder>::kThreads;
  const MoeGemmShape& s = args.shape;
  const auto kernel = prefill_kernel<kOrder, kCluster, Out>;
  const int64_t blocks = (s.capacity() + kTokens - 1) / kTokens;
  const int64_t most = (blocks + kCluster - 1) / kCluster * ((s.n + kColumns - 1) / kColumns);
  const int resident = kCluster == 1
                           ? where.device.processors
                           : resident_clusters(kernel, kCluster, kThreads, kBytes, where.device);
  const auto clusters = static_cast<int>(std::min<int64_t>(most, resident));
  Maps maps{fp8::weights_map(args, kWeightRows<kCluster, Out>), {}};
  if (kOrder == Order::sorted) maps.rows = matrix_map(args.x, s.capacity(), s.k, kHalfTokens);
  ClusterLaunch launch(kernel, clusters, kCluster, kThreads, kBytes, where.stream);
  if (start == Start::early) launch.start_early();
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, maps, args, out), "prefill_kernel");
}

}  // namespace moegate::moe_gemm::prefill
