// SPDX-License-Identifier: Apache-2.0
// The kernel of sparse_rows: a thread that streams weights, warps that list and gather the rows
// that need them, warpgroups that multiply what comes and add it up in shared memory.
#pragma once

#include "kernels/dense_fc2/sparse_rows_lists.cuh"
#include "kernels/dense_fc2/sparse_rows_product.cuh"

namespace moegate::gemm::sparse_rows {

constexpr int kWeightsWarp = kConsumers / 32, kFirstScanWarp = kWeightsWarp + 1,
              kFirstGatherWarp = kFirstScanWarp + kScanWarps,
              kMostThreads = (kFirstGatherWarp + kMostGatherWarps) * 32;

/// Fills the stages of weights, by one thread of a warp.
template <int kSpan>
__device__ void stream_weights(const CUtensorMap* map, const Work& work, const Memory& memory) {
  const Plan& plan = work.plan;
  Shared& shared = *memory.shared;
  const int groups = work.args.shape.expert_groups(), row = blockIdx.x * plan.columns;
  const int slab_bytes = plan.columns * kMoeGroup;
  const uint64_t policy = evict_first();  // read once
  Ring ring{plan.stages};
  for_each_expert(work, shared, [&](int expert, const Word&, int) {
    if (threadIdx.x % 32 != 0) return;
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

/// Fills the stages of rows, by warps that take turns: what a chunk takes is mostly waiting.
template <bool kBlockScales, int kSpan>
class Gatherer {
 public:
  __device__ Gatherer(const Work& work, const Memory& memory, int warp)
      : args_(work.args),
        memory_(memory),
        gather_warps_(work.plan.gather_warps),
        turns_left_(warp),
        ring_{work.plan.stages},
        weights_{work.plan.stages} {}

  /// The chunks of a span of an expert, which has `rows`.
  __device__ void gather(int expert, int first_group, Word word, int rows) {
    const int group = expert * args_.shape.expert_groups() + first_group;
    for (int first = 0; first < rows; first += kChunkRows, ring_.advance()) {
      if (!next_turn()) continue;
      Chunk& chunk = memory_.chunks[ring_.stage];
      const int there = min(rows - first, kChunkRows);
      put_tokens(chunk, first, word);
      if (lane_ == 0) {
        chunk.rows = there;
        chunk.last = first + kChunkRows >= rows;
        chunk.weights = weights_.stage;
        chunk.weights_phase = static_cast<int>(weights_.phase);
      }
      __syncwarp();
      copy_rows(chunk, there, group);
      copy_factors(chunk, there, expert, group);
      publish();
    }
    weights_.advance();
  }
  /// There are no more: a chunk for each warpgroup says so.
  __device__ void finish() {
    for (int i = 0; i < kWarpgroups; ++i, ring_.advance()) {
      if (!next_turn()) continue;
      if (lane_ == 0) memory_.chunks[ring_.stage].rows = 0;
      publish();
    }
  }

 private:
  static constexpr int kPieces = kSpan * kMoeGroup / 16;  // of 16 bytes, next to each other
  static constexpr int kAtOnce = 32 / kPieces;            // rows

  /// Whether the next chunk is this warp's; if so, waits for its stage.
  __device__ bool next_turn() {
    if (turns_left_-- > 0) return false;
    turns_left_ = gather_warps_ - 1;
    wait_barrier(&memory_.shared->rows_empty[ring_.stage], ring_.phase ^ 1);
    return true;
  }

  __device__ void put_tokens(Chunk& chunk, int first, Word word) const {
    while (word.bits != 0 && word.row < first + kChunkRows) {
      if (word.row >= first) {
        chunk.tokens[word.row - first] = word.token + __ffs(static_cast<int>(word.bits)) - 1;
      }
      word.bits &= word.bits - 1;
      ++word.row;
    }
  }

  /// What is beyond the last row stays as it is: it meets no other row's sums.
  __device__ void copy_rows(const Chunk& chunk, int there, int group) const {
    const int piece = lane_ % kPieces, slab = piece / 8;
    const uint32_t to = shared_address(memory_.rows) + (ring_.stage * kSpan + slab) * kChunkBytes;
    const uint8_t* from = args_.a + (int64_t{group} * kMoeGroup + piece * 16);
    int tokens[kChunkRows / kAtOnce];  // read before copies, which loads would not overtake
#pragma unroll
    for (int i = 0; i < kChunkRows / kAtOnce; ++i) {
      tokens[i] = chunk.tokens[i * kAtOnce + lane_ / kPieces];
    }
#pragma unroll
    for (int i = 0; i < kChunkRows / kAtOnce; ++i) {
      const int row = i * kAtOnce + lane_ / kPieces;
      if (row >= there) break;
      copy_async<16>(to + row * kMoeGroup + (piece % 8 ^ row % 8) * 16,  // 128-byte swizzle
                     from + int64_t{tokens[i]} * args_.shape.k(), true);
    }
  }

  __device__ void copy_factors(Chunk& chunk, int there, int expert, int group) const {
    const DenseFc2Shape& s = args_.shape;
    if (lane_ < there) {
      const int64_t token = chunk.tokens[lane_];
      copy_async<4>(shared_address(&chunk.alphas[lane_]),
                    args_.alpha + (token * s.experts + expert), true);
      if constexpr (kBlockScales) {
        copy_async<4>(shared_address(&chunk.a_scales[lane_]),
                      args_.a_scales + (token * s.k_groups() + group), true);
      }
    }
    if (kBlockScales && lane_ < 2) {
      // Beyond the last column: any factor, nothing is written.
      const int n_group = min(memory_.first_column / kMoeGroup + lane_, s.n_groups() - 1);
      copy_async<4>(shared_address(&chunk.b_scales[lane_]),
                    args_.b_scales + (int64_t{n_group} * s.k_groups() + group), true);
    }
  }

  __device__ void publish() {
    uint64_t* full = &memory_.shared->rows_full[ring_.stage];
    arrive_after_copies(full);
    arrive_warp(full);
  }

  const DenseFc2Args& args_;
  const Memory& memory_;
  const int lane_ = threadIdx.x % 32;
  const int gather_warps_;
  int turns_left_;  // of other warps
  Ring ring_, weights_;
};

template <bool kBlockScales, int kSpan>
__device__ void gather_rows(const Work& work, const Memory& memory, int warp) {
  Gatherer<kBlockScales, kSpan> gatherer(work, memory, warp);
  for_each_expert(work, *memory.shared, [&](int expert, const Word& word, int rows) {
    for (int g = 0; g < work.args.shape.expert_groups(); g += kSpan) {
      gatherer.gather(expert, g, word, rows);
    }
  });
  gatherer.finish();
}

__device__ inline void init_barriers(Shared& shared, const Plan& plan) {
  if (threadIdx.x < kLists) {
    init_barrier(&shared.lists_full[threadIdx.x], kScanWarps);
    init_barrier(&shared.lists_empty[threadIdx.x], 1 + plan.gather_warps);
  }
  if (threadIdx.x < kMaxStages) {
    init_barrier(&shared.weights_full[threadIdx.x], 1);
    init_barrier(&shared.weights_empty[threadIdx.x], kWarpgroupWarps);
    init_barrier(&shared.rows_full[threadIdx.x], 32 + 1);
    init_barrier(&shared.rows_empty[threadIdx.x], kWarpgroupWarps);
  }
  if (threadIdx.x < kWarpgroups) init_barrier(&shared.turns[threadIdx.x], kWarpgroupWarps);
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
  init_barriers(*memory.shared, work.plan);
  if (warp < kWeightsWarp) {
    Multiplier<kBlockScales, kSpan>(work, memory).multiply_chunks();
  } else if (warp == kWeightsWarp) {
    stream_weights<kSpan>(&map, work, memory);
  } else if (warp >= kFirstGatherWarp) {
    gather_rows<kBlockScales, kSpan>(work, memory, warp - kFirstGatherWarp);
  } else if (work.args.shape.experts % 4 == 0) {
    scan_alphas<true>(work, *memory.shared, warp - kFirstScanWarp);
  } else {
    scan_alphas<false>(work, *memory.shared, warp - kFirstScanWarp);
  }
  __syncthreads();
  write_sums<kBlockScales>(work, memory);
}

}  // namespace moegate::gemm::sparse_rows
