// SPDX-License-Identifier: Apache-2.0
// The kernel of wide_tiles: a warpgroup that fills the stages, and two that multiply what comes and
// write their sums.
#pragma once

#include "kernels/moe_gemm/wide_tiles/product.cuh"

namespace moegate::moe_gemm::wide_tiles {

/// Fills stages with weights, gathered rows and their scale factors.
template <int Tokens>
__device__ void produce(const CUtensorMap* map, const MoeGemmArgs& args, const Tiles& tiles,
                        Shared<Tokens>& shared) {
  using C = Config<Tokens>;
  const int thread = threadIdx.x - kConsumers, piece = thread % 8;
  const auto* x = static_cast<const uint8_t*>(args.x);
  Ring ring{C::kStages};
  for (int index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const Tile tile = tiles.get(args, index);
    // Rows of x in pieces of 16 bytes, which takes 32 bits; padding has none.
    constexpr uint32_t kNone = ~0u;
    const auto row_of = [&](int row, int pieces) {
      const int id = __ldg(args.sorted_token_ids + tile.block * Tokens + row);
      return id < args.shape.rows() ? static_cast<uint32_t>(args.shape.source(id)) * pieces : kNone;
    };
    uint32_t rows[C::kRowsPerThread];
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i)
      rows[i] = row_of(thread / 8 + i * 16, args.shape.k / 16);
    const uint32_t scales_of = thread < Tokens ? row_of(thread, args.shape.k_groups()) : kNone;
    const int weight_row = tile.expert * args.shape.n + tile.column;
    for (int g = 0; g < args.shape.k_groups(); ++g, ring.advance()) {
      uint8_t* stage = shared.stages[ring.stage];
      uint64_t* full = &shared.full[ring.stage];
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      if (thread == 0) {
        arrive_expecting(full, kWeightBytes);
        copy_tile(shared_address(stage), map, g * kMoeGroup, weight_row, full);
      }
      const uint32_t to = shared_address(stage + kWeightBytes) + thread / 8 * kMoeGroup +
                          (piece ^ thread / 8 % 8) * 16;
      const uint8_t* from = x + g * kMoeGroup + piece * 16;
#pragma unroll
      for (int i = 0; i < C::kRowsPerThread; ++i) {
        const bool there = rows[i] != kNone;
        copy_async<16>(to + i * 16 * kMoeGroup, from + uint64_t{there ? rows[i] : 0} * 16, there);
      }
      if (thread < Tokens) {
        const bool there = scales_of != kNone;
        copy_async<4>(shared_address(&shared.row_scales[ring.stage][thread]),
                      args.x_scales + g + (there ? scales_of : 0), there);
      }
      arrive_after_copies(full);
    }
  }
}

/// Multiplies what comes, and writes the sums.
template <int Tokens, fp8::Output kOutput>
__device__ void consume(const MoeGemmArgs& args, const Tiles& tiles, Shared<Tokens>& memory) {
  constexpr int kProducts = Part<Tokens>::kProducts;
  if (blockIdx.x >= tiles.all) return;
  const Part<Tokens> part;
  const int groups = args.shape.k_groups();
  uint32_t shared = shared_address(&memory);
  asm volatile("" : "+r"(shared));  // kept, where the compiler would compute it every time
  Ring ring{Config<Tokens>::kStages};
  if (threadIdx.x / 128 == 1) pass_turn(1);
  Job<Tokens> next(args, tiles, blockIdx.x, part);
  for (int index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    Job<Tokens> job = next;
    float sums[kProducts][kProductColumns / 2] = {};
    if (job.has_rows) {
      multiply_tile<Tokens>(groups, job, part, memory, shared, ring, sums);
    } else {
      pass_tile<Tokens>(groups, memory, ring);
    }
    if (index + gridDim.x < tiles.all) next = Job<Tokens>(args, tiles, index + gridDim.x, part);
    if (!job.has_rows) continue;
    const float weight =
        args.routing_weights && job.id < args.shape.rows() ? args.routing_weights[job.id] : 1;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      fp8::write_rows<kOutput>(args, job.tile.column + (part.first_product + p) * kProductColumns,
                               job.id, weight, sums[p], memory.staged[threadIdx.x / 32]);
    }
  }
}

template <int Tokens, fp8::Output kOutput>
__global__ void __launch_bounds__(kThreads, 1)
    wide_tiles_kernel(const __grid_constant__ CUtensorMap map,
                      const __grid_constant__ MoeGemmArgs args) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<Shared<Tokens>>(raw);
  if (threadIdx.x < C::kStages) {
    init_barrier(&shared.full[threadIdx.x], kProducers + 1);
    init_barrier(&shared.empty[threadIdx.x], kConsumers / 32);
  }
  fence_barrier_init();
  __syncthreads();
  const Tiles tiles(args);
  if (threadIdx.x >= kConsumers) {
    leave_registers<kProducerRegisters>();
    produce<Tokens>(&map, args, tiles, shared);
  } else {
    take_registers<kConsumerRegisters>();
    consume<Tokens, kOutput>(args, tiles, shared);
  }
}

}  // namespace moegate::moe_gemm::wide_tiles
