// SPDX-License-Identifier: Apache-2.0
// The fp8 grouped GEMMs for many rows per expert: tiles of a block of 64 or 128 routed rows times
// 256 columns. At that size what bounds smaller tiles is not the tensor cores but the path from L2
// to the SMs (R1 gate-up, 8192 tokens, 128 x 128 tiles: L2 at 82 % of its peak, tensor cores at
// half of theirs): a 128 x 256 tile takes 48 KB per 128 of K where two of 128 x 128 take 64.
//
// A warpgroup copies (TMA for weights, asynchronous copies gather the rows), two multiply 64 rows
// by 128 columns at a time. The accumulators go to fp32 sums, times both scale factors, while the
// other warpgroup's product runs; the two take turns. Rows are the M of wgmma here: a thread's 64
// accumulators then have two rows, so two scale factors in place of 32.
#include <algorithm>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/output_tile.cuh"
#include "kernels/moe_gemm/pipeline.cuh"
#include "kernels/moe_gemm/ring.cuh"
#include "kernels/moe_gemm/tile.h"
#include "kernels/moe_gemm/weights_map.h"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate {
namespace gemm {
namespace {

constexpr int kColumns = 256;         // of a tile: rows of weights
constexpr int kProductColumns = 128;  // of a product; its M is 64 rows
constexpr int kProductBytes = kProductColumns * kMoeGroup, kProductRowBytes = 64 * kMoeGroup;
constexpr int kWeightBytes = kColumns * kMoeGroup;  // of a stage
constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;

template <int Tokens>
struct Config {
  static constexpr int kStages = Tokens == 128 ? 4 : 5;
  static constexpr int kStageBytes = kWeightBytes + Tokens * kMoeGroup;
  static constexpr int kRowsPerThread = Tokens * 8 / kProducers;  // 16 bytes of each
};

template <int Tokens>
struct Shared {
  using C = Config<Tokens>;
  uint8_t stages[C::kStages][C::kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[kConsumers / 32][kWarpStagedBytes];  // of the output, per warp
  float row_scales[C::kStages][Tokens];
  uint64_t full[C::kStages], empty[C::kStages];
};

struct Tile {
  int block, expert, column;
};

/// All thread blocks work side by side through the list, columns first: blocks of rows of one
/// expert find its weights in L2.
struct Tiles {
  int columns, all;
  __device__ explicit Tiles(const MoeGemmArgs& args)
      : columns((args.shape.n + kColumns - 1) / kColumns),
        all(*args.padded_rows / args.shape.block * columns) {}
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int block = index / columns;
    return {block, __ldg(args.expert_ids + block), index % columns * kColumns};
  }
};

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

/// The warpgroups' turns at the tensor cores (barriers 3 and 4).
__device__ inline void wait_turn(int warpgroup) {
  asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory");
}
__device__ inline void pass_turn(int warpgroup) {
  asm volatile("bar.arrive %0, 256;" ::"r"(4 - warpgroup) : "memory");
}

/// sums += the product of 64 rows and 128 columns over 128 of K, scaled.
__device__ void add_product(uint64_t a, uint64_t b, float first_scale, float second_scale,
                            float (&sums)[kProductColumns / 2]) {
  const int warpgroup = threadIdx.x / 128;
  float acc[kProductColumns / 2];
  wait_turn(warpgroup);
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<kProductColumns>(acc, a + 2 * k, b + 2 * k, k > 0);
  commit_products();
  pass_turn(warpgroup);
  wait_products();
#pragma unroll
  for (int i = 0; i < kProductColumns / 2; ++i)
    sums[i] += acc[i] * (i / 2 % 2 == 0 ? first_scale : second_scale);
}

/// Of a block of 128 rows each warpgroup has 64, with all columns; of one of 64 it has all rows,
/// with half of the columns.
template <int Tokens>
__device__ void consume(const MoeGemmArgs& args, const Tiles& tiles, Shared<Tokens>& shared) {
  constexpr int kProducts = Tokens / 64;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
  const int first_row = (Tokens == 128 ? warpgroup * 64 : 0) + threadIdx.x / 32 % 4 * 16;
  const int first_product = Tokens == 128 ? 0 : warpgroup;
  const int groups = args.shape.k_groups();
  Ring ring{Config<Tokens>::kStages};
  if (warpgroup == 1) pass_turn(warpgroup);
  for (int index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const Tile tile = tiles.get(args, index);
    const int id = __ldg(args.sorted_token_ids + tile.block * Tokens + first_row + lane % 16);
    const float* weight_scales[kProducts];
    float next_scale[kProducts], sums[kProducts][kProductColumns / 2] = {};
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      // Beyond the last column: any factor, nothing is written.
      const int n_group =
          min(tile.column / kMoeGroup + first_product + p, args.shape.n_groups() - 1);
      weight_scales[p] =
          args.weight_scales + (int64_t{tile.expert} * args.shape.n_groups() + n_group) * groups;
      next_scale[p] = __ldg(weight_scales[p]);
    }
    for (int g = 0; g < groups; ++g, ring.advance()) {
      float weight_scale[kProducts];
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
        weight_scale[p] = next_scale[p];
        next_scale[p] = __ldg(weight_scales[p] + min(g + 1, groups - 1));
      }
      const uint8_t* stage = shared.stages[ring.stage];
      const uint64_t a =
          operand(shared_address(stage + kWeightBytes + first_row / 64 * kProductRowBytes));
      wait_barrier(&shared.full[ring.stage], ring.phase);
      fence_for_products();
      const float* row_scales = shared.row_scales[ring.stage] + first_row + lane / 4;
      const float first = row_scales[0], second = row_scales[8];
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
        const uint64_t b = operand(shared_address(stage + (first_product + p) * kProductBytes));
        add_product(a, b, first * weight_scale[p], second * weight_scale[p], sums[p]);
      }
      __syncwarp();
      if (lane == 0) arrive_barrier(&shared.empty[ring.stage]);
    }
    const float weight =
        args.routing_weights && id < args.shape.rows() ? args.routing_weights[id] : 1;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      write_rows(args, tile.column + (first_product + p) * kProductColumns, id, weight, sums[p],
                 shared.staged[threadIdx.x / 32]);
    }
  }
}

template <int Tokens>
__global__ void __launch_bounds__(kThreads, 1)
    wide_tiles_kernel(const __grid_constant__ CUtensorMap map,
                      const __grid_constant__ MoeGemmArgs args) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  auto& shared =
      *reinterpret_cast<Shared<Tokens>*>(raw + (1024 - shared_address(raw) % 1024) % 1024);
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
    consume<Tokens>(args, tiles, shared);
  }
}

template <int Tokens>
void launch_tokens(const MoeGemmArgs& args, const Launch& where) {
  constexpr size_t kBytes = sizeof(Shared<Tokens>) + 1024;
  const auto kernel = wide_tiles_kernel<Tokens>;
  allow_shared(kernel, kBytes);
  const int64_t blocks = (args.shape.capacity() + args.shape.block - 1) / args.shape.block;
  const int64_t tiles = blocks * ((args.shape.n + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, where.device.processors));
  kernel<<<grid, kThreads, kBytes, static_cast<cudaStream_t>(where.stream)>>>(
      weights_map(args, kColumns), args);
  check_launch("wide_tiles_kernel");
}

void launch_wide_tiles(const MoeGemmArgs& args, const Launch& where) {
  args.shape.block == 64 ? launch_tokens<64>(args, where) : launch_tokens<128>(args, where);
}

std::string unsupported(const MoeGemmShape& s) {
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.block != 64 && s.block != 128) return fmt::format("block = {} is not 64 or 128", s.block);
  if (s.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", s.n);
  return {};
}

const TileRegistration tiles("wide_tiles", launch_wide_tiles, unsupported);

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "wide_tiles",
      .backend = Backend::cuda,
      .help = "wgmma on tiles of 256 columns, for many rows per expert",
      .launch = [](P& problem, const Launch& where) { launch_wide_tiles(problem.args(), where); },
      .unsupported = [](const Case& c, const DeviceFacts&) { return unsupported(P::shape_of(c)); }};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp>());
const Kernel<MoeDown> down(spec<MoeDown>());

}  // namespace
}  // namespace gemm
}  // namespace moegate
