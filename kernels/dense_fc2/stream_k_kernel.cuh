// SPDX-License-Identifier: Apache-2.0
// The main kernel of stream_k: a thread fills stages with 128 of K of both operands; two
// warpgroups multiply up to 256 of an expert's K at a time and add the products, times alpha, to
// the sums of their segment.
#pragma once

#include "kernels/dense_fc2/stream_k_product.cuh"
#include "kernels/dependent_launch.cuh"

namespace moegate::gemm::stream_k {

/// The same value of all lanes, so that the compiler knows: the copy engine takes uniform
/// registers.
__device__ inline uint32_t uniform(uint32_t value) {
  return __shfl_sync(~0u, value, 0);
}
__device__ inline uint64_t uniform(uint64_t value) {
  return uint64_t{uniform(static_cast<uint32_t>(value >> 32))} << 32 |
         uniform(static_cast<uint32_t>(value));
}

/// A warp of which one thread fills the stages with both operands. Of the operand that all blocks
/// share, each block copies a part to all of them.
template <class C>
__device__ void fill_stages(const CUtensorMap* rows_map, const CUtensorMap* weights_map,
                            const Work& work, uint32_t base) {
  using S = Shared<C>;
  const Plan& plan = work.plan;
  const auto rank = static_cast<int>(uniform(static_cast<uint32_t>(cluster_rank())));
  // Activations are read again for every tile of columns, weights once.
  const uint64_t keep = uniform(evict_last()), drop = uniform(evict_first());
  if (threadIdx.x % 32 != 0) return;
  const auto all = static_cast<uint16_t>((1u << plan.blocks) - 1);
  const int row = plan.first_row(lane_of(plan), rank);
  const int row_part = plan.share_weights ? 0 : rank * plan.row_copy();
  const int weight_part = plan.share_weights ? rank * plan.weight_copy() : 0;
  Ring ring{C::kStages};
  for_each_segment(plan, [&](const Segment& segment) {
    const int column = plan.first_column(segment.tile, rank) + weight_part;
    const int per_expert = work.args.shape.expert_groups() * kMoeGroup;
    const int end = segment.last * per_expert;
    for (int k = segment.first * per_expert; k < end; k += kMoeGroup, ring.advance()) {
      const uint32_t full = base + static_cast<uint32_t>(offsetof(S, full)) + ring.stage * 8;
      const uint32_t empty = base + static_cast<uint32_t>(offsetof(S, empty)) + ring.stage * 8;
      const uint32_t stage = base + ring.stage * C::kStageBytes;
      const uint32_t rows = stage + row_part * kMoeGroup;
      const uint32_t weights = stage + C::kRowBytes + weight_part * kMoeGroup;
      wait_barrier(empty, ring.phase ^ 1);
      arrive_expecting(full, C::kStageBytes);
      if (plan.share_weights) {
        copy_tile(weights, weights_map, k, column, full, drop, all);
        copy_tile(rows, rows_map, k, row, full, keep);
      } else {
        copy_tile(weights, weights_map, k, column, full, drop);
        copy_tile(rows, rows_map, k, row + row_part, full, keep, all);
      }
    }
  });
}

__device__ inline void store(float* to, float2 pair, uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v2.f32 [%0], {%1, %2}, %3;" ::"l"(to), "f"(pair.x),
               "f"(pair.y), "l"(policy)
               : "memory");
}

/// Writes a warpgroup's sums, of a thread's two rows `rows_left` and 8 fewer from the end on, to
/// the partial sums at `to`.
template <class C>
__device__ void write_partials(float* to, int rows_left, const typename Consumer<C>::Sums& sums) {
  const uint64_t policy = evict_last();  // sum_segments reads them
#pragma unroll
  for (int i = 0; i < C::kProductColumns / 2; i += 2) {
    const int down = i / 2 % 2 * 8;
    if (rows_left <= down) continue;
    store(to + down * C::kColumns + i / 4 * 8, make_float2(sums[i], sums[i + 1]), policy);
  }
}

/// Multiplies what comes, and writes partial sums.
template <class C>
__device__ void consume(const Work& work, uint32_t base) {
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32, rank = cluster_rank();
  const int row = (C::kRows == 128 ? warpgroup * 64 : 0) + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const int column = C::kRows == 128 ? 0 : warpgroup * C::kProductColumns;
  const int first_row = plan.first_row(lane_of(plan), rank);
  Consumer<C> consumer(base, plan);
  if (warpgroup == 1) pass_turn(1);
  for_each_segment(plan, [&](const Segment& segment) {
    Spans<C::kSpan> spans(shape, segment);
    if (first_row + row / 64 * 64 >= shape.tokens) {
      for (; spans.more(); spans.advance()) consumer.pass_span(spans.groups());
      return;
    }
    const int first_column = plan.first_column(segment.tile, rank) + column;
    Factors<C> factors(work.args, first_row + row, first_column, spans);
    typename Consumer<C>::Sums sums = {};
    for (; spans.more(); spans.advance()) {
      typename Consumer<C>::Sums acc;
      consumer.multiply_span(spans.groups(), acc);
      factors.add(acc, sums);
      factors.advance();
    }
    const int64_t slot = plan.slot(lane_of(plan), cluster_of(plan), segment.tile, rank);
    write_partials<C>(work.partials + (slot * C::kRows + row) * C::kColumns + column + lane % 4 * 2,
                      shape.tokens - first_row - row, sums);
  });
}

template <int Rows, bool kBlockScales>
__global__ void __launch_bounds__(kThreads, 1)
    stream_k_kernel(const __grid_constant__ CUtensorMap rows_map,
                    const __grid_constant__ CUtensorMap weights_map,
                    const __grid_constant__ Work work) {
  using C = Config<Rows, kBlockScales>;
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<Shared<C>>(raw);
  if (threadIdx.x < C::kStages) {
    init_barrier(&shared.full[threadIdx.x], 1);
    init_barrier(&shared.empty[threadIdx.x], kConsumers / 32 * work.plan.blocks);
    fence_barrier_init();
  }
  allow_dependents();
  __syncthreads();
  cluster_arrive();
  cluster_wait();
  uint32_t base = shared_address(&shared);
  asm volatile("" : "+r"(base));  // kept, where the compiler would compute it every time
  if (threadIdx.x >= kConsumers) {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x / 32 == kConsumers / 32) {
      fill_stages<C>(&rows_map, &weights_map, work, base);
    }
    __syncwarp();
  } else {
    take_registers<kConsumerRegisters>();
    consume<C>(work, base);
  }
  // A block's stages and barriers are the others' to write to until all are done.
  cluster_arrive();
  cluster_wait();
}

}  // namespace moegate::gemm::stream_k
