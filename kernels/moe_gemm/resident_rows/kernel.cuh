// SPDX-License-Identifier: Apache-2.0
// The kernel of resident_rows: a thread that streams weights, warps that gather rows, and two
// warpgroups that multiply and write tiles in turn.
#pragma once

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/moe_gemm/fp8/output_tile.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::resident_rows {

using namespace cuda;

constexpr int kColumns = 64;                       // of a tile: rows of weights
constexpr int kStageBytes = kColumns * kMoeGroup;  // 128 of K
constexpr int kConsumers = 256, kThreads = kConsumers + 128;
constexpr int kGatherers = 96;  // threads
constexpr int kMaxStages = 8;   // of weights, per warpgroup
constexpr int kMaxGroups = 8;
constexpr int kMaxBuffers = 2;  // of routed rows
// Tiles that follow each other with the same rows. More gather less, fewer keep blocks of rows of
// one expert, which run side by side, close enough to find its weights in L2.
constexpr int kMostTilesInARow = 32;

template <int Tokens>
struct Config {
  static constexpr int kBlocksPerSm = Tokens == 128 ? 1 : 2;
  static constexpr int kConsumerRegisters = Tokens == 128 ? 232 : 96;
  static constexpr int kProducerRegisters = Tokens == 128 ? 40 : 48;  // what consumers leave
};

/// Shared memory beside the stages and the routed rows.
template <int Tokens>
struct Shared {
  uint8_t staged[2][fp8::kWarpgroupStagedBytes];  // of the output, per warpgroup
  float scales[kMaxBuffers][kMaxGroups][Tokens];  // of the rows, times their routing weights
  int ids[kMaxBuffers][Tokens];                   // rows of out
  uint64_t rows_full[kMaxBuffers], rows_empty[kMaxBuffers];
  uint64_t full[2][kMaxStages], empty[2][kMaxStages];  // per warpgroup
};

/// What fits into shared memory.
struct Plan {
  int groups;   // of K
  int buffers;  // of routed rows
  int stages;   // of weights, per warpgroup
  int shared_bytes;
};

struct Work {
  MoeGemmArgs args;
  Plan plan;
};
static_assert(std::has_unique_object_representations_v<Work>, "a row's identity");

/// Calls f(block of rows, first tile, end tile) for the tiles of a thread block. All of them work
/// side by side through the list of tiles in rounds, each with a run of neighbours.
template <class F>
__device__ void for_runs(const MoeGemmArgs& args, F f) {
  const int per_block = (args.shape.n + kColumns - 1) / kColumns;
  const int blocks = gridDim.x, all = *args.padded_rows / args.shape.block * per_block;
  const int round = blocks * kMostTilesInARow, runs = (all + round - 1) / round * blocks;
  const int each = all / runs, longer = all % runs;  // the first runs, by one
  for (int run = blockIdx.x; run < runs; run += blocks) {
    int tile = run * each + min(run, longer);
    const int end = tile + each + (run < longer);
    while (tile < end) {
      const int block = tile / per_block, begin = block * per_block;
      const int stop = min(end, begin + per_block);
      f(block, tile - begin, stop - begin);
      tile = stop;
    }
  }
}

/// Fills each warpgroup's ring with the weights of its tiles, by one thread.
template <int Tokens>
__device__ void stream_weights(const CUtensorMap* map, const Work& work, uint8_t* stages,
                               Shared<Tokens>& shared) {
  const MoeGemmArgs& args = work.args;
  Ring ring{work.plan.stages}, other{work.plan.stages};
  int turn = 0;  // whose the next tile is
  for_runs(args, [&](int block, int first, int end) {
    const int row = __ldg(args.expert_ids + block) * args.shape.n;
    for (int tile = first; tile < end; ++tile, turn ^= 1) {
      for (int g = 0; g < work.plan.groups; ++g, ring.advance()) {
        uint64_t* full = &shared.full[turn][ring.stage];
        wait_barrier(&shared.empty[turn][ring.stage], ring.phase ^ 1);
        arrive_expecting(full, kStageBytes);
        copy_tile(shared_address(stages + (turn * ring.stages + ring.stage) * kStageBytes), map,
                  g * kMoeGroup, row + tile * kColumns, full);
      }
      const Ring swapped = ring;
      ring = other;
      other = swapped;
    }
  });
}

/// Rows of x with their scale factors, ids and routing weights.
template <int Tokens>
__device__ void gather_rows(const Work& work, uint8_t* rows, Shared<Tokens>& shared) {
  const MoeGemmArgs& args = work.args;
  constexpr int kAtOnce = kGatherers / 8, kEach = (Tokens + kAtOnce - 1) / kAtOnce;
  const int thread = threadIdx.x - (kThreads - kGatherers), piece = thread % 8;
  const int groups = work.plan.groups;
  const auto* x = static_cast<const uint8_t*>(args.x);
  Ring ring{work.plan.buffers};
  for_runs(args, [&](int block, int, int) {
    const int32_t* sorted = args.sorted_token_ids + block * Tokens;
    // Rows of x in pieces of 16 bytes, which takes 32 bits; padding has none.
    constexpr uint32_t kNone = ~0u;
    uint32_t from[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int row = thread / 8 + i * kAtOnce;
      const int id = row < Tokens ? __ldg(sorted + row) : args.shape.rows();
      from[i] = id < args.shape.rows()
                    ? static_cast<uint32_t>(args.shape.source(id)) * (args.shape.k / 16) + piece
                    : kNone;
    }
    wait_barrier(&shared.rows_empty[ring.stage], ring.phase ^ 1);
    wait_for_dependency();  // in down a chain's activations come last
    const uint32_t to =
        shared_address(rows) + (ring.stage * groups * Tokens + thread / 8) * kMoeGroup;
    static_assert(kAtOnce % 8 == 4);  // from row to row the swizzle changes by 4
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int row = thread / 8 + i * kAtOnce;
      if (row >= Tokens) continue;
      const bool there = from[i] != kNone;
      const uint32_t at = to + i * kAtOnce * kMoeGroup + (piece ^ thread / 8 % 8 ^ i % 2 * 4) * 16;
      const uint8_t* source = x + uint64_t{there ? from[i] : 0} * 16;
      for (int g = 0; g < groups; ++g)
        copy_async<16>(at + g * Tokens * kMoeGroup, source + g * kMoeGroup, there);
    }
    arrive_after_copies(&shared.rows_full[ring.stage]);
    for (int row = thread; row < Tokens; row += kGatherers) {
      const int r = __ldg(sorted + row);
      const bool there = r < args.shape.rows();
      const float weight = there && args.routing_weights ? args.routing_weights[r] : 1;
      shared.ids[ring.stage][row] = r;
      for (int g = 0; g < groups; ++g)
        shared.scales[ring.stage][g][row] =
            there ? args.x_scales[int64_t{args.shape.source(r)} * groups + g] * weight : 0;
    }
    arrive_barrier(&shared.rows_full[ring.stage]);
    ring.advance();
  });
  wait_for_dependency();  // without a tile, too: the launch behind relies on all before this one
}

/// Sums of 64 columns of the resident rows.
template <int Tokens>
__device__ void multiply_tile(const uint8_t* rows, const float (&row_scales)[kMaxGroups][Tokens],
                              const float* weight_scales, const uint8_t* stages, Ring& ring,
                              int groups, Shared<Tokens>& shared, float (&sums)[Tokens / 2]) {
  const int warpgroup = threadIdx.x / 128;
  for (float& sum : sums) sum = 0;
  for (int g = 0; g < groups; ++g, ring.advance()) {
    const float weight_scale = __ldg(weight_scales + g);
    const uint32_t a = operand(shared_address(stages + ring.stage * kStageBytes));
    const uint32_t b = operand(shared_address(rows + g * Tokens * kMoeGroup));
    float acc[Tokens / 2];
    wait_barrier(&shared.full[warpgroup][ring.stage], ring.phase);
    start_group<Tokens>(acc, a, b);
    wait_products();
    if (threadIdx.x % 32 == 0) arrive_barrier(&shared.empty[warpgroup][ring.stage]);
    add_scaled<Tokens>(sums, acc, row_scales[g], weight_scale);
  }
}

/// Multiplies and writes every other tile, whatever block of rows it belongs to.
template <int Tokens, fp8::Output kOutput>
__device__ void consume(const Work& work, const uint8_t* rows, const uint8_t* stages,
                        Shared<Tokens>& shared) {
  const MoeGemmArgs& args = work.args;
  const int warpgroup = threadIdx.x / 128, groups = work.plan.groups;
  stages += warpgroup * work.plan.stages * kStageBytes;
  Ring ring{work.plan.stages}, buffers{work.plan.buffers};
  int turn = 0;  // whose the next tile is
  for_runs(args, [&](int block, int first, int end) {
    const float* weight_scales = args.weight_scales + int64_t{__ldg(args.expert_ids + block)} *
                                                          args.shape.n_groups() * groups;
    wait_barrier(&shared.rows_full[buffers.stage], buffers.phase);
    fence_for_products();
    for (int tile = first; tile < end; ++tile, turn ^= 1) {
      if (turn != warpgroup) continue;
      const int column = tile * kColumns;
      float sums[Tokens / 2];
      multiply_tile<Tokens>(
          rows + buffers.stage * groups * Tokens * kMoeGroup, shared.scales[buffers.stage],
          weight_scales + column / kMoeGroup * groups, stages, ring, groups, shared, sums);
      fp8::write_columns<kOutput, Tokens>(args, column, shared.ids[buffers.stage], sums,
                                          shared.staged[warpgroup]);
    }
    arrive_warp(&shared.rows_empty[buffers.stage]);
    buffers.advance();
  });
}

template <int Tokens, fp8::Output kOutput>
__global__ void __launch_bounds__(kThreads, Config<Tokens>::kBlocksPerSm)
    resident_rows_kernel(const __grid_constant__ CUtensorMap map,
                         const __grid_constant__ Work work) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  uint8_t* rows = raw + (1024 - shared_address(raw) % 1024) % 1024;
  const Plan& plan = work.plan;
  uint8_t* stages = rows + plan.buffers * plan.groups * Tokens * kMoeGroup;
  auto& shared = *reinterpret_cast<Shared<Tokens>*>(stages + 2 * plan.stages * kStageBytes);
  for (int warpgroup = 0; warpgroup < 2; ++warpgroup) {
    init_barriers(warpgroup, shared.full[warpgroup], 1);
    init_barriers(2 + warpgroup, shared.empty[warpgroup], 4);
  }
  init_barriers(4, shared.rows_full, 2 * kGatherers);
  init_barriers(5, shared.rows_empty, kConsumers / 32);
  fence_barrier_init();
  __syncthreads();
  if (!work.args.shape.down) wait_for_dependency();  // for the sorted rows
  allow_dependents();
  if (threadIdx.x < kConsumers) {
    take_registers<C::kConsumerRegisters>();
    consume<Tokens, kOutput>(work, rows, stages, shared);
  } else {
    leave_registers<C::kProducerRegisters>();
    if (threadIdx.x >= kThreads - kGatherers) {
      gather_rows<Tokens>(work, rows, shared);
    } else if (threadIdx.x / 32 == kConsumers / 32 && elected()) {
      stream_weights<Tokens>(&map, work, stages, shared);
    }
  }
}

}  // namespace moegate::moe_gemm::resident_rows
