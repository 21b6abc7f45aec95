// SPDX-License-Identifier: Apache-2.0
// Launches of kernels in thread-block clusters, and how many clusters a GPU holds.
#pragma once

#include <map>
#include <mutex>
#include <tuple>

#include "harness/kernel/device.h"
#include "kernels/cuda/dependent_launch.cuh"

namespace moegate::cuda {

/// A launch but for its arguments. Refers to itself: stays where it is made.
struct ClusterLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};

  /// Clusters of `blocks` blocks, more than 8 where the GPU grants it. One block: a plain launch;
  /// numAttrs = 1 makes it clusters of one.
  template <class KernelFunction>
  ClusterLaunch(KernelFunction* kernel, int clusters, int blocks, int threads, size_t shared_bytes,
                void* stream) {
    allow_shared(kernel, shared_bytes);
    if (blocks > 8) {
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                 "cluster of more than 8 blocks");
    }
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    config.gridDim = static_cast<unsigned>(blocks * clusters);
    config.blockDim = static_cast<unsigned>(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    config.numAttrs = blocks > 1 ? 1 : 0;
  }
  /// The kernel calls wait_for_dependency().
  void start_early() { attributes[config.numAttrs++] = early_start(); }
  ClusterLaunch(const ClusterLaunch&) = delete;
};

/// Clusters that an idle GPU holds at once, asked of the driver once: whole clusters may leave some
/// of a GPC's SMs unused. Without a GPU as many as there are SMs for.
template <class KernelFunction>
int resident_clusters(KernelFunction* kernel, int blocks, int threads, size_t shared_bytes,
                      const DeviceFacts& device) {
  if (device.backend != Backend::cuda) return device.processors / blocks;
  static std::mutex mutex;
  static std::map<std::tuple<std::string, const void*, int>, int> known;
  const std::lock_guard lock(mutex);
  const std::tuple key(device.uuid, reinterpret_cast<const void*>(kernel), blocks);
  if (const auto at = known.find(key); at != known.end()) return at->second;
  ClusterLaunch launch(kernel, 1, blocks, threads, shared_bytes, nullptr);
  launch.config.numAttrs = 1;  // of a launch without a cluster size the driver counts one
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config),
             "cudaOccupancyMaxActiveClusters");
  return known[key] = clusters;
}

}  // namespace moegate::cuda
