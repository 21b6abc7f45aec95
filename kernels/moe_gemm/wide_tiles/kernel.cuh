// SPDX-License-Identifier: Apache-2.0
// The kernel of wide_tiles: a warpgroup that fills the stages, and two that multiply what comes and
// write their sums.
#pragma once

#include "kernels/moe_gemm/gathered_rows.cuh"
#include "kernels/moe_gemm/wide_tiles/product_bf16.cuh"
#include "kernels/moe_gemm/wide_tiles/product_fp8.cuh"

namespace moegate::moe_gemm::wide_tiles {

/// Starts the copies of a stage's weights in a cluster, by one thread: of this block's share to all
/// blocks where these are shared, else of all weights.
template <class C>
__device__ void copy_shares(uint8_t* stage, const CUtensorMap* map, int column, int row,
                            bool shared, uint64_t* full) {
  constexpr int kRows = C::kColumns / C::kCluster;  // of a share
  const int rank = cluster_rank();
  const auto to_blocks = static_cast<uint16_t>(shared ? (1 << C::kCluster) - 1 : 1 << rank);
  for (int share = 0; share < C::kCluster; ++share) {
    if (shared && share != rank) continue;
    copy_tile(shared_address(stage) + share * kRows * kSliceBytes, map, column, row + share * kRows,
              shared_address(full), evict_normal(), to_blocks);
  }
}

/// Fills stages with weights, gathered rows and their scale factors.
template <class C>
__device__ void produce(const CUtensorMap* map, const MoeGemmArgs& args, const Tiles<C>& tiles,
                        Shared<C>& shared) {
  const int thread = threadIdx.x - kConsumers;
  const bool one_lane = elected(), starts = thread / 32 == 0 && one_lane;
  const int row_bytes = args.shape.k * C::kElementBytes;
  Ring ring{C::kStages};
  for (int index = tiles.first(); tiles.has(args, index); index += tiles.step()) {
    const Tile tile = tiles.get(args, index);
    const auto id_of = [&](int row) {
      return tile.exists ? __ldg(args.sorted_token_ids + tile.block * C::kTokens + row)
                         : args.shape.rows();
    };
    GatheredRows<C::kTokens> rows(args, row_bytes, thread, id_of);
    const int scaled_id = C::kScaled && thread < C::kTokens ? id_of(thread) : args.shape.rows();
    const bool has_scales = scaled_id < args.shape.rows();
    const int scales_at = args.shape.source(scaled_id) * args.shape.k_groups();
    const int weight_row = tile.expert * args.shape.n + tile.column;
    rows.for_slices(slices_of<C::kDtype>(args.shape), [&](int slice, int ahead) {
      uint8_t* stage = shared.stages[ring.stage];
      uint64_t* full = &shared.full[ring.stage];
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      if (starts) {
        arrive_expecting(full, C::kWeightBytes);
        if constexpr (C::kCluster == 1) {
          copy_tile(shared_address(stage), map, slice * kSliceBytes, weight_row, full);
        } else {
          copy_shares<C>(stage, map, slice * kSliceBytes, weight_row, tile.shared, full);
        }
      }
      // The last slice of fp8 is whole.
      const bool inside = C::kScaled || slice * kSliceBytes + thread % 8 * 16 < row_bytes;
      rows.start(shared_address(stage + C::kWeightBytes), ahead, inside);
      if (has_scales)
        copy_async<4>(shared_address(&shared.row_scales[ring.stage][thread]),
                      args.x_scales + scales_at + slice, true);
      arrive_after_copies(full);
      ring.advance();
    });
  }
  if constexpr (C::kCluster > 1) {
    // Nobody ends before the others' arrivals are there.
    for (int i = 0; i < C::kStages; ++i, ring.advance())
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
  }
}

/// For a warpgroup whose rows are all padding.
template <class C>
__device__ void pass_tile(int slices, Shared<C>& memory, Ring& ring) {
  for (int slice = 0; slice < slices; ++slice, ring.advance()) {
    if constexpr (C::kScaled) pass_turns<C>();
    wait_barrier(&memory.full[ring.stage], ring.phase);
    leave_stage<C>(&memory.empty[ring.stage]);
  }
}

/// Multiplies what comes, and writes the sums.
template <class C, fp8::Output kOutput>
__device__ void consume(const MoeGemmArgs& args, const Tiles<C>& tiles, Shared<C>& memory) {
  if (!tiles.has(args, tiles.first())) return;
  const Part<C> part;
  const int slices = slices_of<C::kDtype>(args.shape);
  uint32_t shared = shared_address(&memory);
  asm volatile("" : "+r"(shared));  // kept, where the compiler would compute it every time
  Ring ring{C::kStages};
  if (C::kScaled && threadIdx.x / 128 == 1) pass_turn(1);
  Job<C> next(args, tiles, tiles.first(), part);
  for (int index = tiles.first(); tiles.has(args, index); index += tiles.step()) {
    Job<C> job = next;
    Sums<C> sums = {};
    if (!job.has_rows) {
      pass_tile<C>(slices, memory, ring);
    } else if constexpr (C::kScaled) {
      multiply_scaled<C>(slices, job, part, memory, shared, ring, sums);
    } else {
      multiply_plain<C>(slices, part, memory, shared, ring, sums);
    }
    if (tiles.has(args, index + tiles.step()))
      next = Job<C>(args, tiles, index + tiles.step(), part);
    if (!job.has_rows) continue;
    const float weight =
        args.routing_weights && job.id < args.shape.rows() ? args.routing_weights[job.id] : 1;
#pragma unroll
    for (int p = 0; p < C::kProducts; ++p) {
      fp8::write_rows<kOutput>(args,
                               job.tile.column + (part.first_product + p) * C::kProductColumns,
                               job.id, weight, sums[p], memory.staged[threadIdx.x / 32]);
    }
  }
}

template <class C, fp8::Output kOutput>
__global__ void __launch_bounds__(kThreads, 1)
    wide_tiles_kernel(const __grid_constant__ CUtensorMap map,
                      const __grid_constant__ MoeGemmArgs args) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<Shared<C>>(raw);
  init_barriers(0, shared.full, kProducers + 1);
  init_barriers(1, shared.empty, C::kCluster * kConsumers / 32);
  fence_barrier_init();
  if constexpr (C::kCluster > 1) {
    cluster_arrive();  // after which others write here
    cluster_wait();
  }
  __syncthreads();
  const Tiles<C> tiles(args);
  if (threadIdx.x >= kConsumers) {
    leave_registers<C::kProducerRegisters>();
    produce<C>(&map, args, tiles, shared);
  } else {
    take_registers<C::kConsumerRegisters>();
    consume<C, kOutput>(args, tiles, shared);
  }
}

}  // namespace moegate::moe_gemm::wide_tiles
