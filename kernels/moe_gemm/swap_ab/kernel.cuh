// SPDX-License-Identifier: Apache-2.0
// The kernel of swap_ab: threads that fill a ring of stages, and threads that multiply what comes.
#pragma once

#include <type_traits>

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/wgmma_s8.cuh"
#include "kernels/moe_gemm/swap_ab/output.cuh"
#include "kernels/moe_gemm/swap_ab/tiles.cuh"

namespace moegate::moe_gemm::swap_ab {

using namespace cuda;

/// What copies need to know of a block of rows, looked up before its tile begins.
struct RowBlock {
  int block, expert;
  int id;  // of one row, another for each thread
};

template <class C>
__device__ RowBlock look_up(const MoeGemmArgs& args, int block, int thread) {
  return {block, __ldg(args.expert_ids + block),
          __ldg(args.sorted_token_ids + block * C::kTokens + thread % C::kTokens)};
}

/// Calls f(tile, what is known of its rows) for the thread block's tiles. The first lookup does not
/// wait for the number of blocks, later ones happen a tile ahead.
template <class C, class F>
__device__ void for_tiles(const MoeGemmArgs& args, const Cut& cut, int thread, F f) {
  const int padded = __ldg(args.padded_rows);
  RowBlock next = look_up<C>(args, likely_row_block<C>(args.shape, cut), thread);
  const Tiles<C> tiles(args.shape, cut, padded / C::kTokens);
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles[index];
    const RowBlock rows = tile.block == next.block ? next : look_up<C>(args, tile.block, thread);
    if (index + tiles.step < tiles.end)
      next = look_up<C>(args, tiles[index + tiles.step].block, thread);
    f(tile, rows);
  }
}

/// The rows of x that a producer thread copies 16 bytes of, and the one whose scale factors.
template <class C>
struct Gather {
  static constexpr int kStep = C::kRowThreads / 8;  // from a thread's row to its next
  int block = -1;
  int64_t from[C::kRowsPerThread];  // byte of x; negative for padding
  int64_t scale;

  __device__ void take(const MoeGemmArgs& args, const RowBlock& rows, int thread) {
    if (rows.block == block) return;
    block = rows.block;
    const auto source = [&](int id) { return id < args.shape.rows() ? args.shape.source(id) : -1; };
    const int own = source(rows.id);
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i) {
      const int row = thread / 8 + i * kStep;
      const int from_row = C::kFewRows
                               ? __shfl_sync(~0u, own, row)
                               : source(__ldg(args.sorted_token_ids + block * C::kTokens + row));
      from[i] = int64_t{from_row} * args.shape.k * C::kElementBytes + thread % 8 * 16;
    }
    if constexpr (C::kScaled) scale = int64_t{own} * args.shape.k_groups();
  }
};

/// Starts the copy of a stage's weights: rows of one expert from `column` on.
template <class C>
__device__ void copy_weights(const Stages<C>& stages, const CUtensorMap* map,
                             const MoeGemmArgs& args, int expert, int column, int slice) {
  arrive_expecting(stages.full(), C::kTileBytes);
  copy_tile(shared_address(stages.weights()), map, slice * kSliceBytes,
            expert * args.shape.n + column, stages.full());
}

/// Fills stages with weights, by one thread: all that these wait for is the expert.
template <class C>
__device__ void produce_weights(const CUtensorMap* map, const MoeGemmArgs& args, const Cut& cut,
                                Stages<C> stages) {
  for_tiles<C>(args, cut, 0, [&](const Tile& tile, const RowBlock& rows) {
    for (int i = 0; i < tile.slices; ++i, stages.advance()) {
      wait_barrier(stages.empty(), stages.phase ^ 1);
      copy_weights(stages, map, args, rows.expert, tile.column, tile.first_slice + i);
    }
  });
}

/// Starts the copies of a stage's rows and of its scale factors.
template <class C>
__device__ void copy_rows(const Stages<C>& stages, const MoeGemmArgs& args, const Gather<C>& gather,
                          const float* weight_scales, int slice, int thread) {
  const auto* x = static_cast<const uint8_t*>(args.x);
  const uint32_t at = shared_address(stages.rows());
  // The last slice of fp8 in blocks is whole.
  const bool inside =
      C::kScaled || slice * kSliceBytes + thread % 8 * 16 < args.shape.k * C::kElementBytes;
#pragma unroll
  for (int i = 0; i < C::kRowsPerThread; ++i) {
    const int row = thread / 8 + i * Gather<C>::kStep;
    const bool there = gather.from[i] >= 0 && inside;
    copy_async<16>(at + row * kSliceBytes + ((thread % 8 ^ row % 8) * 16),  // 128-byte swizzle
                   x + (there ? gather.from[i] + slice * kSliceBytes : 0), there);
  }
  if constexpr (C::kScaled) {
    if (thread < C::kTokens) {
      const bool there = gather.scale >= 0;
      copy_async<4>(shared_address(stages.row_scales() + thread),
                    args.x_scales + (there ? gather.scale + slice : 0), there);
    }
    if (thread == C::kRowThreads - 1)
      copy_async<4>(shared_address(stages.weight_scale()), weight_scales + slice, true);
  }
  arrive_after_copies(stages.full());
}

/// Fills stages with what depends on the rows; where these are many, with weights, too.
template <class C>
__device__ void produce_rows(const CUtensorMap* map, const MoeGemmArgs& args, const Cut& cut,
                             Stages<C> stages) {
  const int thread = threadIdx.x - C::kConsumers;
  const bool one_lane = elected(), starts = !C::kFewRows && thread / 32 == 0 && one_lane;
  Gather<C> gather;
  for_tiles<C>(args, cut, thread, [&](const Tile& tile, const RowBlock& rows) {
    gather.take(args, rows, thread);
    wait_for_dependency();  // in down a chain's activations come last
    const float* weight_scales =
        args.weight_scales +
        (int64_t{rows.expert} * args.shape.n_groups() + tile.column / kMoeGroup) *
            args.shape.k_groups();
    for (int i = 0; i < tile.slices; ++i, stages.advance()) {
      const int slice = tile.first_slice + i;
      wait_barrier(stages.empty(), stages.phase ^ 1);
      if (starts) copy_weights(stages, map, args, rows.expert, tile.column, slice);
      copy_rows(stages, args, gather, weight_scales, slice, thread);
    }
  });
  wait_for_dependency();  // without a tile, too: the launch behind relies on all before this one
}

/// The operands of the warpgroup's products in a stage, which it has waited for.
template <class C>
struct Operands {
  uint32_t weights, rows;
  __device__ explicit Operands(const Stages<C>& stages)
      : weights(operand(shared_address(stages.weights() + threadIdx.x / 128 * 64 * kSliceBytes))),
        rows(operand(shared_address(stages.rows()))) {}
};

/// Sums of 64 columns and all rows over the tile's slices, by one warpgroup. Of fp8: in fp32
/// registers, times the slice's scale factors where it has some.
template <class C>
__device__ void sum_fp8(const Tile& tile, Stages<C>& stages, float (&sums)[C::kTokens / 2]) {
  for (float& sum : sums) sum = 0;
  for (int i = 0; i < tile.slices; ++i, stages.advance()) {
    wait_barrier(stages.full(), stages.phase);
    fence_for_products();
    const Operands<C> at(stages);
    float acc[C::kTokens / 2];
    if constexpr (C::kScaled) {
      const float weight_scale = *stages.weight_scale();
      start_group<C::kTokens>(acc, at.weights, at.rows);
      wait_products();
      add_scaled<C::kTokens>(sums, acc, stages.row_scales(), weight_scale);
      arrive_warp(stages.empty());
    } else {
      start_group<C::kTokens>(acc, at.weights, at.rows);
      wait_products();
      arrive_warp(stages.empty());
#pragma unroll
      for (int j = 0; j < C::kTokens / 2; ++j) sums[j] += acc[j];
    }
  }
}

/// Of bf16 and int8: in the tensor cores' accumulators. A stage is left once its products are done,
/// while those of the next one are under way.
template <class C>
__device__ void sum_plain(const Tile& tile, Stages<C>& stages,
                          typename C::Sum (&sums)[C::kTokens / 2]) {
  uint64_t* left = nullptr;
  for (int i = 0; i < tile.slices; ++i, stages.advance()) {
    wait_barrier(stages.full(), stages.phase);
    fence_for_products();
    const Operands<C> at(stages);
    if constexpr (C::kDtype == DType::i8) {
      start_group<C::kTokens>(sums, at.weights, at.rows, i > 0);
    } else {
      start_group<C::kTokens, C::kDtype>(sums, at.weights, at.rows, i > 0);
    }
    if (i > 0) {
      wait_products<1>();
      arrive_warp(left);
    }
    left = stages.empty();
  }
  wait_products();
  arrive_warp(left);
}

/// Multiplies what comes, and sends the sums away.
template <class C, class Output>
__device__ void multiply_tiles(const MoeGemmArgs& args, const Cut& cut, Stages<C> stages) {
  const Tiles<C> tiles(args.shape, cut, __ldg(args.padded_rows) / C::kTokens);
  Output output(args, cut, stages.shared);
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles[index];
    const int next = index + tiles.step;
    output.begin(tile, next < tiles.end ? tiles[next].block : -1);
    typename C::Sum sums[C::kTokens / 2];
    if constexpr (C::kDtype == DType::e4m3) {
      sum_fp8<C>(tile, stages, sums);
    } else {
      sum_plain<C>(tile, stages, sums);
    }
    output.write(tile, sums);
  }
}

template <class C>
__device__ void prepare_barriers(uint8_t* shared) {
  const Stages<C> first{shared};
  init_barriers<C::kStages>(0, first.full(), C::kRowThreads + 1);
  init_barriers<C::kStages>(1, first.empty(), C::kConsumers / 32);
  if constexpr (C::kSplit) init_barriers<2>(2, arrived_barriers<C>(shared), 1);
  fence_barrier_init();
  // No block of a cluster sends before all have come here, or is gone before they have.
  if constexpr (C::kSplit) cluster_arrive();
  __syncthreads();
}

template <class C>
__device__ __forceinline__ void multiply_all(const CUtensorMap& map, const MoeGemmArgs& args,
                                             const Cut& cut) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const int role = threadIdx.x / 32 - C::kConsumers / 32;  // warps from the first that copies on
  if (role == 0 && threadIdx.x % 32 == 0) prefetch_map(&map);
  prepare_barriers<C>(shared);
  if (!args.shape.down) wait_for_dependency();  // for the sorted rows
  allow_dependents();
  const Stages<C> stages{shared};
  if (role < 0) {
    using Output = std::conditional_t<C::kFewRows, WarpOutput<C>, StagedOutput<C>>;
    multiply_tiles<C, Output>(args, cut, stages);
    return;
  }
  if (role < C::kRowThreads / 32) {
    produce_rows<C>(&map, args, cut, stages);
  } else if (elected()) {
    produce_weights<C>(&map, args, cut, stages);
  }
  __syncwarp();
  if constexpr (C::kSplit) cluster_wait();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    swap_ab_kernel(const __grid_constant__ CUtensorMap map,
                   const __grid_constant__ MoeGemmArgs args, const Cut cut) {
  multiply_all<C>(map, args, cut);
}
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    swap_ab_bias_kernel(const __grid_constant__ CUtensorMap map,
                        const __grid_constant__ BiasedArgs args, const Cut cut) {
  multiply_all<C>(map, args, cut);
}

}  // namespace moegate::moe_gemm::swap_ab
