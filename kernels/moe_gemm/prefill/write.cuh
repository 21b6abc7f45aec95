// SPDX-License-Identifier: Apache-2.0
// How prefill's output leaves: by bulk copies that a warp per multiplying warpgroup starts. They
// run while the warpgroup multiplies its next tile.
#pragma once

#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

/// Until what this thread started has been read from shared memory.
__device__ inline void wait_bursts() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Ids of a lane's two rows of half a tile, 32 apart; R or more: padding.
using RowIds = int[kHalfTokens / 32];

template <Order kOrder, int kCluster, class Out>
__device__ void write(const MoeGemmArgs& args, const Out& out, Shared<Out>& shared) {
  constexpr int kEach = kHalfTokens / 32;
  const Tiles<kCluster, Out> tiles(args);
  const int lane = threadIdx.x % 32, half = (threadIdx.x - Roles<kOrder>::kFirstWriter) / 32;
  const int all_rows = args.shape.rows();
  const auto ask = [&](int index, RowIds& ids) {  // a tile ahead
    const Place place = tiles.get(index);
    const int first = place.row + half * kHalfTokens + lane;
    const bool there = tiles.is_there(place) && half < place.halves;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      ids[i] = there ? __ldg(args.sorted_token_ids + first + i * 32) : all_rows;
  };
  RowIds next = {};
  if (tiles.first < tiles.all) ask(tiles.first, next);
  uint32_t phase = 0;
  for (int index = tiles.first; index < tiles.all; index += tiles.step) {
    const RowIds ids = {next[0], next[1]};
    if (index + tiles.step < tiles.all) ask(index + tiles.step, next);
    // Padding is at a block's end: where the first row has none, all are.
    if (__shfl_sync(~0u, ids[0], 0) >= all_rows) continue;
    wait_barrier(&shared.staged_full[half], phase);
    out.start(args.shape, tiles.get(index), half, ids, shared_address(shared.staged[half]));
    wait_bursts();
    arrive_warp(&shared.staged_empty[half]);
    phase ^= 1;
  }
}

}  // namespace moegate::moe_gemm::prefill
