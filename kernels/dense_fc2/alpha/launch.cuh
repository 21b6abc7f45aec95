// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels on tiles.cuh: which of their configurations suits a shape, their
// grids, and what they do not support.
#pragma once

#include <algorithm>

#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/dense_fc2/alpha/tiles.cuh"

namespace moegate::dense_fc2::alpha {

using namespace cuda;

/// Calls f with the configuration for a shape's step of K and scale factors.
template <AlphaPer PerAlpha, int Columns, int Blocks, class F>
void with_config(const DenseFc2Shape& s, F f) {
  with_rows<128, 256>(s.k_tile, [&]<int KTile>() {
    s.block_scales ? f(Config<PerAlpha, Columns, KTile, true, Blocks>())
                   : f(Config<PerAlpha, Columns, KTile, false, Blocks>());
  });
}

/// Launches a kernel of (maps, args) with a block per SM at most.
template <class C, class KernelFunction>
void launch_tiles(KernelFunction* kernel, size_t shared_bytes, const DenseFc2Args& args,
                  const Launch& where) {
  const DenseFc2Shape& s = args.shape;
  const int clusters = std::min(all_tiles<C>(s), where.device.processors / C::kBlocks);
  const ClusterLaunch launch(kernel, clusters, C::kBlocks, kThreads, shared_bytes, where.stream);
  const Maps maps = {
      matrix_map(args.a, s.tokens, s.k(), kRows),
      matrix_map(args.a, s.tokens, s.k(), rows_of(s, (s.tokens - 1) / kRows * kRows)),
      matrix_map(args.b, s.hidden, s.k(), C::kColumns / C::kBlocks)};
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, maps, args), "dense_fc2 kernel");
}

inline std::string unsupported(const Case& c, const DeviceFacts&) {
  const auto s = DenseFc2Shape::of(c);
  if (s.hidden % 8 == 0) return {};
  return fmt::format("H = {} is not a multiple of 8 (16 bytes of a row of out): pad it", s.hidden);
}

/// A variant's registration but for its launch.
inline KernelSpec<DenseFc2> spec(const std::string& name, const std::string& help,
                                 void (*launch)(DenseFc2&, const Launch&)) {
  return {.name = name,
          .backend = Backend::cuda,
          .help = help,
          .launch = launch,
          .unsupported = unsupported};
}

}  // namespace moegate::dense_fc2::alpha
