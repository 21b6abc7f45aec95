// SPDX-License-Identifier: Apache-2.0
// The kernel of sparse_rows: a thread that streams weights, warps that list the rows that need
// them, cut the lists into chunks and gather these, warpgroups that multiply what comes and add it
// up in shared memory.
#pragma once

#include "kernels/dense_fc2/sparse_rows/lists.cuh"
#include "kernels/dense_fc2/sparse_rows/product.cuh"

namespace moegate::dense_fc2::sparse_rows {

constexpr int kWeightsWarp = kConsumers / 32, kPlanWarp = kWeightsWarp + 1,
              kFirstScanWarp = kPlanWarp + 1, kFirstGatherWarp = kFirstScanWarp + kScanWarps,
              kMostThreads = (kFirstGatherWarp + kMostGatherWarps) * 32;

/// Fills the stages of weights, by one thread of a warp.
template <int kSpan>
__device__ void stream_weights(const CUtensorMap* map, const Work& work, const Memory& memory) {
  const Plan& plan = work.plan;
  Shared& shared = *memory.shared;
  const int groups = work.args.shape.expert_groups(), row = blockIdx.x * plan.columns;
  const int slab_bytes = plan.columns * kMoeGroup;
  const uint64_t policy = evict_first();  // read once
  const bool starts = elected();
  Ring ring{plan.stages};
  for_each_expert(work, shared, [&](int expert, const List&) {
    if (!starts) return;
    for (int g = 0; g < groups; g += kSpan, ring.advance()) {
      const uint32_t full = shared_address(&shared.weights_full[ring.stage]);
      const uint32_t to = shared_address(memory.weights) + ring.stage * kSpan * slab_bytes;
      wait_barrier(&shared.weights_empty[ring.stage], ring.phase ^ 1);
      arrive_expecting(full, kSpan * slab_bytes);
#pragma unroll
      for (int slab = 0; slab < kSpan; ++slab) {
        copy_tile(to + slab * slab_bytes, map, (expert * groups + g + slab) * kMoeGroup, row, full,
                  policy);
      }
    }
  });
}

/// Cuts the lists into chunks and orders them, by a warp: who gathers and who multiplies sees only
/// its own.
template <int kSpan>
__device__ void order_chunks(const Work& work, const Memory& memory) {
  Shared& shared = *memory.shared;
  const int lane = threadIdx.x % 32, groups = work.args.shape.expert_groups();
  Ring ring{work.plan.stages}, weights{work.plan.stages};
  for_each_expert(work, shared, [&](int expert, const List& list) {
    const int word = lane - list.first_lane;
    for (int g = 0; g < groups; g += kSpan, weights.advance()) {
      for (int first = 0; first < list.rows; first += kChunkRows, ring.advance()) {
        wait_barrier(&shared.rows_empty[ring.stage], ring.phase ^ 1);
        Chunk& chunk = memory.chunks[ring.stage];
        if (0 <= word && word < work.plan.words()) chunk.list[word] = list.bits;
        if (lane == 0) {
          chunk.rows = min(list.rows - first, kChunkRows);
          chunk.last = first + kChunkRows >= list.rows;
          chunk.weights = weights.stage;
          chunk.weights_phase = static_cast<int>(weights.phase);
          chunk.expert = expert;
          chunk.group = expert * groups + g;
          chunk.first = first;
        }
        arrive_warp(&shared.ordered[ring.stage]);
      }
    }
  });
  // There are no more: so many say so that all who take turns get one.
  for (int i = 0; i < max(work.plan.gather_warps, kWarpgroups); ++i, ring.advance()) {
    wait_barrier(&shared.rows_empty[ring.stage], ring.phase ^ 1);
    if (lane == 0) memory.chunks[ring.stage].rows = 0;
    arrive_warp(&shared.ordered[ring.stage]);
  }
}

/// Fills the stages of rows, by warps that take turns: what a chunk takes is mostly waiting.
template <bool kBlockScales, int kSpan>
class Gatherer {
 public:
  __device__ Gatherer(const Work& work, const Memory& memory)
      : args_(work.args), plan_(work.plan), memory_(memory), ring_{work.plan.stages} {}

  /// Of as many chunks as there are warps, one after the other, the `warp`th.
  __device__ void gather_chunks(int warp) {
    Shared& shared = *memory_.shared;
    ring_.advance(warp);
    for (;; ring_.advance(plan_.gather_warps)) {
      wait_barrier(&shared.ordered[ring_.stage], ring_.phase);
      Chunk& chunk = memory_.chunks[ring_.stage];
      const int rows = chunk.rows;
      if (rows > 0) {
        put_tokens(chunk, rows);
        __syncwarp();
        copy_rows(chunk, rows);
        copy_factors(chunk, rows);
      }
      arrive_after_copies(&shared.rows_full[ring_.stage]);
      arrive_warp(&shared.rows_full[ring_.stage]);
      if (rows == 0) break;
    }
  }

 private:
  static constexpr int kPieces = kSpan * kMoeGroup / 16;  // of 16 bytes, next to each other
  static constexpr int kAtOnce = 32 / kPieces;            // rows

  /// From the bits of the expert's list, of which a lane has a word.
  __device__ void put_tokens(Chunk& chunk, int rows) const {
    uint32_t bits = lane_ < plan_.words() ? chunk.list[lane_] : 0;
    int end = __popc(bits);  // rows of the expert up to and with this lane's
    for (int step = 1; step < plan_.words(); step *= 2) {
      const int before = __shfl_up_sync(~0u, end, step);
      if (lane_ >= step) end += before;
    }
    int row = end - __popc(bits) - chunk.first;  // of the chunk
    for (; bits != 0 && row < rows; ++row, bits &= bits - 1) {
      if (row >= 0) chunk.tokens[row] = lane_ * 32 + __ffs(static_cast<int>(bits)) - 1;
    }
    if (rows <= lane_ && lane_ < kChunkRows) chunk.tokens[lane_] = args_.shape.tokens;
  }

  /// What is beyond the last row stays as it is: it meets no row's sums.
  __device__ void copy_rows(const Chunk& chunk, int rows) const {
    const int piece = lane_ % kPieces, slab = piece / 8;
    const uint32_t to = shared_address(memory_.rows) + (ring_.stage * kSpan + slab) * kChunkBytes;
    const uint8_t* from = args_.a + (int64_t{chunk.group} * kMoeGroup + piece * 16);
    int tokens[kChunkRows / kAtOnce];  // read before copies, which loads would not overtake
#pragma unroll
    for (int i = 0; i < kChunkRows / kAtOnce; ++i) {
      tokens[i] = chunk.tokens[i * kAtOnce + lane_ / kPieces];
    }
#pragma unroll
    for (int i = 0; i < kChunkRows / kAtOnce; ++i) {
      const int row = i * kAtOnce + lane_ / kPieces;
      if (row >= rows) break;
      copy_async<16>(to + row * kMoeGroup + (piece % 8 ^ row % 8) * 16,  // 128-byte swizzle
                     from + int64_t{tokens[i]} * args_.shape.k(), true);
    }
  }

  __device__ void copy_factors(Chunk& chunk, int rows) const {
    const DenseFc2Shape& s = args_.shape;
    if (lane_ < rows) {
      const int64_t token = chunk.tokens[lane_];
      copy_async<4>(shared_address(&chunk.alphas[lane_]),
                    args_.alpha + (token * s.experts + chunk.expert), true);
      if constexpr (kBlockScales) {
        copy_async<4>(shared_address(&chunk.a_scales[lane_]),
                      args_.a_scales + (token * s.k_groups() + chunk.group), true);
      }
    }
    if (kBlockScales && lane_ < 2) {
      // Beyond the last column: any factor, nothing is written.
      const int n_group = min(memory_.first_column / kMoeGroup + lane_, s.n_groups() - 1);
      copy_async<4>(shared_address(&chunk.b_scales[lane_]),
                    args_.b_scales + (int64_t{n_group} * s.k_groups() + chunk.group), true);
    }
  }

  const DenseFc2Args& args_;
  const Plan& plan_;
  const Memory& memory_;
  const int lane_ = threadIdx.x % 32;
  Ring ring_;
};

__device__ inline void prepare_barriers(Shared& shared) {
  init_barriers(0, shared.lists_full, kScanWarps);
  init_barriers(1, shared.lists_empty, 2);  // who streams, who plans
  init_barriers(2, shared.weights_full, 1);
  init_barriers(3, shared.weights_empty, kWarpgroupWarps);
  init_barriers(4, shared.ordered, 1);
  init_barriers(5, shared.rows_full, 32 + 1);
  init_barriers(6, shared.rows_empty, kWarpgroupWarps);
  for (int warpgroup = 0; warpgroup < kWarpgroups; ++warpgroup)
    init_barriers(7 + warpgroup, shared.turns[warpgroup], 1);
  fence_barrier_init();
  __syncthreads();
}

template <bool kBlockScales, int kSpan>
__global__ void __launch_bounds__(kMostThreads, 1)
    sparse_rows_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ Work work) {
  extern __shared__ uint8_t raw[];
  const Memory memory(raw, work);
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == kWeightsWarp * 32) prefetch_map(&map);
  clear_sums(work, memory);
  prepare_barriers(*memory.shared);
  if (warp < kWeightsWarp) {
    Multiplier<kBlockScales, kSpan>(work, memory).multiply_chunks();
  } else if (warp == kWeightsWarp) {
    stream_weights<kSpan>(&map, work, memory);
  } else if (warp == kPlanWarp) {
    order_chunks<kSpan>(work, memory);
  } else if (warp >= kFirstGatherWarp) {
    Gatherer<kBlockScales, kSpan>(work, memory).gather_chunks(warp - kFirstGatherWarp);
  } else if (work.args.shape.experts % 4 == 0) {
    scan_alphas<true>(work, *memory.shared, warp - kFirstScanWarp);
  } else {
    scan_alphas<false>(work, *memory.shared, warp - kFirstScanWarp);
  }
  __syncthreads();
  write_sums<kBlockScales>(work, memory);
}

}  // namespace moegate::dense_fc2::sparse_rows
