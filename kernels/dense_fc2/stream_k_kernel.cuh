// SPDX-License-Identifier: Apache-2.0
// The main kernel of stream_k: a thread fills two rings of slots, of activations and of weights,
// 128 of K each; two warpgroups multiply up to 256 of an expert's K at a time by 128 columns and
// add the products, times alpha, to the sums of their segment.
#pragma once

#include "kernels/dense_fc2/stream_k_product.cuh"

namespace moegate::gemm::stream_k {

/// Copies 128 of K of `rows` rows to a slot of this block; or its share of them to that of all
/// blocks.
__device__ inline void fill(uint32_t slot, const CUtensorMap* map, int group, int row, int rows,
                            uint64_t* full, const Plan& plan, bool shared, uint64_t policy) {
  if (!shared) return copy_tile(slot, map, group * kMoeGroup, row, full, policy);
  const auto all = static_cast<uint16_t>((1u << plan.blocks) - 1);
  for (int piece = cluster_rank(); piece < rows / kPieceRows; piece += plan.blocks) {
    copy_tile(slot + piece * kPieceBytes, map, group * kMoeGroup, row + piece * kPieceRows, full,
              policy, all);
  }
}

/// One thread fills the slots.
template <int Rows, bool kBlockScales>
__device__ void produce(const CUtensorMap* rows_map, const CUtensorMap* weights_map,
                        const Work& work, Shared<Config<Rows, kBlockScales>>& shared) {
  using C = Config<Rows, kBlockScales>;
  const Plan& plan = work.plan;
  // Activations are read again for every tile of columns, weights once.
  const uint64_t keep = evict_last(), drop = evict_first();
  Ring rows{C::kRowSlots}, weights{C::kWeightSlots};
  for_each_segment(plan, [&](const Segment& segment) {
    const int row = plan.first_row(segment.tile, cluster_rank());
    const int column = plan.first_column(segment.tile, cluster_rank());
    for (Spans<C::kSpan> spans(work.args.shape, segment); spans.more(); spans.advance()) {
      const int groups = spans.groups();
      for (int first = 0; first < kColumns; first += C::kWeightRows) {
        for (int g = spans.group(); g < spans.group() + groups; ++g) {
          if (first == 0) {
            uint64_t* full = &shared.rows_full[rows.stage];
            wait_barrier(&shared.rows_empty[rows.stage], rows.phase ^ 1);
            arrive_expecting(full, C::kRowBytes);
            fill(shared_address(shared.rows[rows.stage]), rows_map, g, row, Rows, full, plan,
                 !plan.share_weights, keep);
            rows.advance();
          }
          uint64_t* full = &shared.weights_full[weights.stage];
          wait_barrier(&shared.weights_empty[weights.stage], weights.phase ^ 1);
          arrive_expecting(full, C::kWeightBytes);
          fill(shared_address(shared.weights[weights.stage]), weights_map, g, column + first,
               C::kWeightRows, full, plan, plan.share_weights, drop);
          weights.advance();
        }
      }
    }
  });
}

/// Multiplies what comes, and writes partial sums.
template <int Rows, bool kBlockScales>
__device__ void consume(const Work& work, Shared<Config<Rows, kBlockScales>>& shared) {
  using C = Config<Rows, kBlockScales>;
  const Plan& plan = work.plan;
  const DenseFc2Shape& shape = work.args.shape;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32, rank = cluster_rank();
  const int row = (Rows == 128 ? warpgroup * 64 : 0) + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const int column = Rows == 128 ? 0 : warpgroup * kProductColumns;
  Consumer<Rows, kBlockScales> consumer(shared, plan);
  if (warpgroup == 1) pass_turn(1);
  for_each_segment(plan, [&](const Segment& segment) {
    const int first_row = plan.first_row(segment.tile, rank);
    Spans<C::kSpan> spans(shape, segment);
    Factors<Rows, kBlockScales> factors(work.args, first_row + row,
                                        plan.first_column(segment.tile, rank) + column, spans);
    float sums[C::kProducts][kProductColumns / 2] = {};
    for (; spans.more(); spans.advance()) {
      consumer.multiply_span(spans.groups(), factors, sums);
      factors.advance();
    }
    const int64_t slot = plan.slot(blockIdx.x / plan.blocks, segment.tile, rank);
    float* to = work.partials + (slot * Rows + row) * kColumns + column + lane % 4 * 2;
    const int rows_left = shape.tokens - first_row - row;
#pragma unroll
    for (int i = 0; i < C::kProducts * kProductColumns / 2; i += 2) {
      const int p = i / (kProductColumns / 2), j = i % (kProductColumns / 2);
      if (rows_left <= j / 2 % 2 * 8) continue;
      *reinterpret_cast<float2*>(to + j / 2 % 2 * 8 * kColumns + p * kProductColumns + j / 4 * 8) =
          make_float2(sums[p][j], sums[p][j + 1]);
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
  auto& shared = *reinterpret_cast<Shared<C>*>(raw + (1024 - shared_address(raw) % 1024) % 1024);
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
  __syncthreads();
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x >= kConsumers) {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x == kConsumers) {
      produce<Rows, kBlockScales>(&rows_map, &weights_map, work, shared);
    }
    __syncwarp();
  } else {
    take_registers<kConsumerRegisters>();
    consume<Rows, kBlockScales>(work, shared);
  }
  // A block's slots and barriers are the others' to write to until all are done.
  cluster_arrive();
  cluster_wait();
}

}  // namespace moegate::gemm::stream_k
