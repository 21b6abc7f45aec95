// SPDX-License-Identifier: Apache-2.0
// The second kernel of stream_k: adds the segments of every tile up, always in the order of K.
#pragma once

#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/dense_fc2/stream_k/product.cuh"

namespace moegate::dense_fc2::stream_k {

using namespace cuda;

constexpr int kSumThreads = 256;

/// out [M, H] = the sums of all segments, in the order of K; a thread has 8 columns.
template <bool kBlockScales>
__global__ void __launch_bounds__(kSumThreads) sum_segments(const __grid_constant__ Work work) {
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int pieces = shape.hidden / 8;
  const int64_t index = int64_t{blockIdx.x} * kSumThreads + threadIdx.x;
  if (index >= int64_t{shape.tokens} * pieces) return;
  const auto m = static_cast<int>(index / pieces), n = static_cast<int>(index % pieces) * 8;
  const int row_tile = m / plan.rows, tile = n / plan.columns();
  const int rank = row_tile % plan.blocks, lane = row_tile / plan.blocks;
  const int first = plan.cluster_of(int64_t{tile} * shape.experts);
  const int last = plan.cluster_of(int64_t{tile + 1} * shape.experts - 1);
  float sums[8] = {};
  wait_for_dependency();
#pragma unroll 4
  for (int cluster = first; cluster <= last; ++cluster) {
    const auto* from = reinterpret_cast<const float4*>(
        work.partials +
        (plan.slot(lane, cluster, tile, rank) * plan.rows + m % plan.rows) * plan.columns() +
        n % plan.columns());
    const float4 low = __ldcs(from), high = __ldcs(from + 1);
    sums[0] += low.x, sums[1] += low.y, sums[2] += low.z, sums[3] += low.w;
    sums[4] += high.x, sums[5] += high.y, sums[6] += high.z, sums[7] += high.w;
  }
  const float scale = kBlockScales ? 1 : work.args.a_scales[0] * work.args.b_scales[0];
  uint32_t packed[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    packed[i] = pack_bf16(sums[2 * i] * scale, sums[2 * i + 1] * scale);
  }
  *reinterpret_cast<uint4*>(work.args.out + int64_t{m} * shape.hidden + n) = {packed[0], packed[1],
                                                                              packed[2], packed[3]};
}

}  // namespace moegate::dense_fc2::stream_k
