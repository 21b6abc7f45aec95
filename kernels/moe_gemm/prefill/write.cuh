// SPDX-License-Identifier: Apache-2.0
// How prefill's output leaves: row by row, wherever a row belongs, by bulk copies that a warp per
// multiplying warpgroup starts. They run while the warpgroup multiplies its next tile.
#pragma once

#include "kernels/moe_gemm/prefill/plan.cuh"

namespace moegate::moe_gemm::prefill {

template <fp8::Output kOutput>
__device__ void start_burst(uint16_t* to, uint32_t from, int bytes) {
  if constexpr (kOutput == fp8::Output::rows) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(
            to),
        "r"(from), "r"(bytes)
        : "memory");
  }
}

/// Until what this thread started has been read from shared memory.
__device__ inline void wait_bursts() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

template <Order kOrder, int kCluster, fp8::Output kOutput>
__device__ void write(const MoeGemmArgs& args, Shared& shared) {
  constexpr int kEach = kHalfTokens / 32;
  const Tiles<kCluster> tiles(args);
  const int lane = threadIdx.x % 32, half = (threadIdx.x - Roles<kOrder>::kFirstWriter) / 32;
  const int all_rows = args.shape.rows();
  const auto ask = [&](int index, int(&ids)[kEach]) {  // a tile ahead
    const Place place = tiles.get(index);
    const int first = place.block * kTokens + half * kHalfTokens + lane;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      ids[i] = tiles.is_there(place) ? __ldg(args.sorted_token_ids + first + i * 32) : all_rows;
  };
  int next[kEach] = {};
  if (tiles.first < tiles.all) ask(tiles.first, next);
  uint32_t phase = 0;
  for (int index = tiles.first; index < tiles.all; index += tiles.step) {
    const int ids[kEach] = {next[0], next[1]}, column = tiles.get(index).column;
    if (index + tiles.step < tiles.all) ask(index + tiles.step, next);
    // Padding is at a block's end: where the first row has none, all are.
    if (__shfl_sync(~0u, ids[0], 0) >= all_rows) continue;
    const int bytes = min(kColumns, args.shape.n - column) * 2;
    const uint32_t staged = shared_address(shared.staged[half]) + lane * kStagedPitch;
    wait_barrier(&shared.staged_full[half], phase);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (ids[i] >= all_rows) continue;
      const int64_t row = kOutput == fp8::Output::rows ? ids[i] : ids[i] / args.shape.topk;
      start_burst<kOutput>(args.out + row * args.shape.n + column, staged + i * 32 * kStagedPitch,
                           bytes);
    }
    wait_bursts();
    arrive_warp(&shared.staged_empty[half]);
    phase ^= 1;
  }
}

}  // namespace moegate::moe_gemm::prefill
