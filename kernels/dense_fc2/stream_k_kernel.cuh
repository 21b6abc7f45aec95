// SPDX-License-Identifier: Apache-2.0
// The main kernel of stream_k: a thread fills two rings of slots, of activations and of weights,
// 128 of K each; two warpgroups multiply up to 256 of an expert's K at a time by 128 columns and
// add the products, times alpha, to the sums of their segment.
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

/// A ring of slots of kBytes from the side of the thread that fills it. Of slots that all blocks
/// share, each block copies some pieces to all of them.
template <int kSlots, int kBytes>
struct Feed {
  const CUtensorMap* map;
  uint32_t slots, full, empty;
  uint64_t policy;
  bool shared;
  int blocks;
  int turn;  // the first piece that is this block's, of the next slot
  int piece_rows;
  Ring ring{kSlots};

  __device__ void copy(int group, int row) {
    const uint32_t to = slots + ring.stage * kBytes, opens = full + ring.stage * 8;
    const int column = group * kMoeGroup;
    wait_barrier(empty + ring.stage * 8, ring.phase ^ 1);
    arrive_expecting(opens, kBytes);
    if (shared) {
      const auto all = static_cast<uint16_t>((1u << blocks) - 1);
      for (int piece = turn; piece * piece_rows < kBytes / kMoeGroup; piece += blocks) {
        const int first = piece * piece_rows;
        copy_tile(to + first * kMoeGroup, map, column, row + first, opens, policy, all);
      }
      if (++turn == blocks) turn = 0;
    } else {
      copy_tile(to, map, column, row, opens, policy);
    }
    ring.advance();
  }
};

/// A warp of which one thread fills the slots of activations.
template <class C>
__device__ void feed_rows(const CUtensorMap* map, const Work& work, uint32_t base) {
  using S = Shared<C>;
  const Plan& plan = work.plan;
  const auto rank = static_cast<int>(uniform(static_cast<uint32_t>(cluster_rank())));
  // Read again for every tile of columns.
  Feed<C::kRowSlots, C::kRowBytes> feed{map,
                                        base + static_cast<uint32_t>(offsetof(S, rows)),
                                        base + static_cast<uint32_t>(offsetof(S, rows_full)),
                                        base + static_cast<uint32_t>(offsetof(S, rows_empty)),
                                        uniform(evict_last()),
                                        !plan.share_weights,
                                        plan.blocks,
                                        rank,
                                        plan.row_piece()};
  if (threadIdx.x % 32 != 0) return;
  const int row = plan.first_row(lane_of(plan), rank);
  for_each_segment(plan, [&](const Segment& segment) {
    const int per_expert = work.args.shape.expert_groups();
    for (int g = segment.first * per_expert; g < segment.last * per_expert; ++g) {
      feed.copy(g, row);
    }
  });
}

/// The same with weights: a span's for the first product, then for the second.
template <class C>
__device__ void feed_weights(const CUtensorMap* map, const Work& work, uint32_t base) {
  using S = Shared<C>;
  const Plan& plan = work.plan;
  const auto rank = static_cast<int>(uniform(static_cast<uint32_t>(cluster_rank())));
  // Read once.
  Feed<C::kWeightSlots, C::kWeightBytes> feed{
      map,
      base + static_cast<uint32_t>(offsetof(S, weights)),
      base + static_cast<uint32_t>(offsetof(S, weights_full)),
      base + static_cast<uint32_t>(offsetof(S, weights_empty)),
      uniform(evict_first()),
      plan.share_weights,
      plan.blocks,
      rank,
      plan.weight_piece()};
  if (threadIdx.x % 32 != 0) return;
  for_each_segment(plan, [&](const Segment& segment) {
    const int column = plan.first_column(segment.tile, rank);
    for (Spans<C::kSpan> spans(work.args.shape, segment); spans.more(); spans.advance()) {
      const int first = spans.group(), last = first + spans.groups();
      for (int part = 0; part < kColumns; part += C::kSlotColumns) {
        for (int g = first; g < last; ++g) feed.copy(g, column + part);
      }
    }
  });
}

__device__ inline void store(float* to, float2 pair, uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v2.f32 [%0], {%1, %2}, %3;" ::"l"(to), "f"(pair.x),
               "f"(pair.y), "l"(policy)
               : "memory");
}

/// Multiplies what comes, and writes partial sums.
template <int Rows, bool kBlockScales>
__device__ void consume(const Work& work, uint32_t base) {
  using C = Config<Rows, kBlockScales>;
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32, rank = cluster_rank();
  const int row = (Rows == 128 ? warpgroup * 64 : 0) + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const int column = Rows == 128 ? 0 : warpgroup * kProductColumns;
  Consumer<Rows, kBlockScales> consumer(base, plan);
  if (warpgroup == 1) pass_turn(1);
  const int first_row = plan.first_row(lane_of(plan), rank);
  for_each_segment(plan, [&](const Segment& segment) {
    Spans<C::kSpan> spans(shape, segment);
    Factors<Rows, kBlockScales> factors(work.args, first_row + row,
                                        plan.first_column(segment.tile, rank) + column, spans);
    float sums[C::kProducts][kProductColumns / 2] = {};
    if (first_row + row / 64 * 64 >= shape.tokens) {
      for (; spans.more(); spans.advance()) consumer.pass_span(spans.groups());
      return;
    }
    for (; spans.more(); spans.advance()) {
      consumer.multiply_span(spans.groups(), factors, sums);
      factors.advance();
    }
    const int64_t slot = plan.slot(lane_of(plan), cluster_of(plan), segment.tile, rank);
    float* to = work.partials + (slot * Rows + row) * kColumns + column + lane % 4 * 2;
    const int rows_left = shape.tokens - first_row - row;
    const uint64_t policy = evict_last();  // read again by sum_segments
#pragma unroll
    for (int i = 0; i < C::kProducts * kProductColumns / 2; i += 2) {
      const int p = i / (kProductColumns / 2), j = i % (kProductColumns / 2);
      if (rows_left <= j / 2 % 2 * 8) continue;
      store(to + j / 2 % 2 * 8 * kColumns + p * kProductColumns + j / 4 * 8,
            make_float2(sums[p][j], sums[p][j + 1]), policy);
    }
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
  if (threadIdx.x == 0) {
    constexpr int kWarps = kConsumers / 32;
    const Plan& plan = work.plan;
    for (int i = 0; i < C::kRowSlots; ++i) {
      init_barrier(&shared.rows_full[i], 1);
      init_barrier(&shared.rows_empty[i], kWarps * (plan.share_weights ? 1 : plan.blocks));
    }
    for (int i = 0; i < C::kWeightSlots; ++i) {
      init_barrier(&shared.weights_full[i], 1);
      init_barrier(&shared.weights_empty[i], kWarps * (plan.share_weights ? plan.blocks : 1));
    }
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
    const int warp = threadIdx.x / 32 - kConsumers / 32;
    if (warp == 0) feed_rows<C>(&rows_map, work, base);
    if (warp == 1) feed_weights<C>(&weights_map, work, base);
    __syncwarp();
  } else {
    take_registers<kConsumerRegisters>();
    consume<Rows, kBlockScales>(work, base);
  }
  // A block's slots and barriers are the others' to write to until all are done.
  cluster_arrive();
  cluster_wait();
}

}  // namespace moegate::gemm::stream_k
