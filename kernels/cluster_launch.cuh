// SPDX-License-Identifier: Apache-2.0
// Launches of kernels in thread-block clusters.
#pragma once

#include "kernels/cuda_check.cuh"

namespace moegate {

/// A launch but for its arguments. Refers to itself: stays where it is made.
struct ClusterLaunch {
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = {};

  /// Clusters of `blocks` blocks. Without a stream for resident() alone.
  template <class KernelFunction>
  ClusterLaunch(KernelFunction* kernel, int clusters, int blocks, int threads, size_t shared_bytes,
                void* stream = nullptr) {
    allow_shared(kernel, shared_bytes);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    config.gridDim = static_cast<unsigned>(blocks * clusters);
    config.blockDim = static_cast<unsigned>(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;

  /// Clusters that an idle GPU holds at once: whole clusters may leave some of a GPC's SMs unused.
  template <class KernelFunction>
  int resident(KernelFunction* kernel) const {
    int clusters = 0;
    check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config),
               "cudaOccupancyMaxActiveClusters");
    return clusters;
  }
};

}  // namespace moegate
