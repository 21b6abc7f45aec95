// SPDX-License-Identifier: Apache-2.0
// The fp8 grouped GEMMs with the operands swapped: 128 rows of an expert's weights are the M of
// wgmma, the BM routed rows of a block its N, so that few tokens waste no tensor-core rows and
// every weight is streamed once. Weights come by TMA, routed rows are gathered by asynchronous
// copies into the same swizzle; a warp (four where BM is large) copies, two warpgroups multiply, a
// ring of stages is between them. Blocks are persistent, each with a run of tiles: copies for the
// next tile go on while the sums of this one are written. After each group of 128 along K the sums
// go from the tensor cores' accumulators to fp32 registers, times both scale factors: fp8
// accumulation on Hopper keeps too few bits for more.
//
// swap_ab_split_k cuts K over the blocks of a cluster where the tiles alone would leave SMs idle
// (few tokens, long K), and adds the parts through distributed shared memory in their order: one
// launch, no atomics, no workspace, the same result every time.
//
// First measured on an H200, cold, in a graph, us for T = 1, 8, 32, 128, 512, 2048, 8192, the best
// BM of each (in brackets the public Triton kernel, tuned):
//   R1 TP8 gate-up       25 55 143 219 233 350 848 (31 54 152 226 244 306 816), split K at T =
//   1: 18.4 R1 TP8 down          8.9 32 80 125 153 335 1010 (8.5 38 121 154 215 383 1116) Qwen3-30B
//   gate-up    10.4 43 85 99 108 239 730 (13.6 42 92 102 116 223 711) Qwen3-30B down       7.2 25
//   46 55 68 172 501 (8.7 26 52 58 77 154 496)
// Open: gate-up from T = 2048, where one tensor-core product waits for the sums of the one before.
#include <algorithm>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/launches.h"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/pipeline.cuh"
#include "kernels/moe_gemm/swap_ab_output.cuh"
#include "kernels/moe_gemm/swap_ab_tiles.cuh"
#include "kernels/moe_gemm/weights_map.h"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate {
namespace gemm {
namespace {

constexpr int kMaxSplits = 8;  // the largest cluster that needs no asking

/// The rows of x that a producer thread copies 16 bytes of, and the one whose scale factors.
template <int Tokens>
struct Gather {
  using C = Config<Tokens>;
  int64_t from[C::kRowsPerThread];  // element of x; negative for padding
  int64_t scale;

  __device__ void load(const MoeGemmArgs& args, int block, int thread) {
    const auto source = [&](int row) {
      const int id = __ldg(args.sorted_token_ids + block * Tokens + row);
      return id < args.shape.rows() ? args.shape.source(id) : -1;
    };
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i)
      from[i] =
          int64_t{source(thread / 8 + i * (C::kProducers / 8))} * args.shape.k + thread % 8 * 16;
    scale = thread < Tokens ? int64_t{source(thread)} * args.shape.k_groups() : -1;
  }
};

/// Fills stages: one 128-wide slice of K of the weights and of the rows each.
template <int Tokens>
__device__ void produce(const CUtensorMap* map, const MoeGemmArgs& args, const Tiles& tiles,
                        Stages<Tokens> stages) {
  using C = Config<Tokens>;
  const int thread = threadIdx.x - kConsumers;
  const auto* x = static_cast<const uint8_t*>(args.x);
  Gather<Tokens> gather;
  int gathered = -1;  // block
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles.get(args, index);
    if (tile.block != gathered) gather.load(args, gathered = tile.block, thread);
    const int weight_row = tile.expert * args.shape.n + tile.column;
    for (int g = tile.first_group; g < tile.first_group + tile.groups; ++g, stages.advance()) {
      wait_barrier(&stages.empty[stages.stage], stages.phase ^ 1);
      uint64_t* full = &stages.full[stages.stage];
      if (thread == 0) {
        arrive_expecting(full, kTileBytes);
        copy_tile(shared_address(stages.weights()), map, g * kMoeGroup, weight_row, full);
      }
      const uint32_t at = shared_address(stages.rows());
#pragma unroll
      for (int i = 0; i < C::kRowsPerThread; ++i) {
        const int row = thread / 8 + i * (C::kProducers / 8);
        const bool there = gather.from[i] >= 0;
        copy_async<16>(at + row * kMoeGroup + ((thread % 8 ^ row % 8) * 16),  // 128-byte swizzle
                       x + (there ? gather.from[i] + g * kMoeGroup : 0), there);
      }
      if (thread < Tokens) {
        const bool there = gather.scale >= 0;
        copy_async<4>(shared_address(stages.row_scales() + thread),
                      args.x_scales + (there ? gather.scale + g : 0), there);
      }
      arrive_after_copies(full);
    }
  }
}

/// Sums of 64 columns and all rows over the tile's groups, by one warpgroup.
template <int Tokens>
__device__ void consume(const MoeGemmArgs& args, const Tile& tile, Stages<Tokens>& stages,
                        float (&sums)[Tokens / 2]) {
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
  const float* weight_scales = args.weight_scales + (int64_t{tile.expert} * args.shape.n_groups() +
                                                     tile.column / kMoeGroup) *
                                                        args.shape.k_groups();
  for (float& sum : sums) sum = 0;
  for (int g = tile.first_group; g < tile.first_group + tile.groups; ++g, stages.advance()) {
    const float weight_scale = __ldg(weight_scales + g);
    wait_barrier(&stages.full[stages.stage], stages.phase);
    fence_for_products();
    const uint64_t a = operand(shared_address(stages.weights() + warpgroup * (kTileBytes / 2)));
    const uint64_t b = operand(shared_address(stages.rows()));
    float acc[Tokens / 2];
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k) multiply<Tokens>(acc, a + 2 * k, b + 2 * k, k > 0);
    commit_products();
    wait_products();
    const float* scales = stages.row_scales() + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < Tokens / 8; ++j) {
      const float2 pair = *reinterpret_cast<const float2*>(scales + j * 8);
      const float first = pair.x * weight_scale, second = pair.y * weight_scale;
      sums[4 * j] += acc[4 * j] * first;
      sums[4 * j + 1] += acc[4 * j + 1] * second;
      sums[4 * j + 2] += acc[4 * j + 2] * first;
      sums[4 * j + 3] += acc[4 * j + 3] * second;
    }
    __syncwarp();
    if (lane == 0) arrive_barrier(&stages.empty[stages.stage]);
  }
}

template <int Tokens>
__global__ void __launch_bounds__(Config<Tokens>::kThreads, Config<Tokens>::kBlocksPerSm)
    swap_ab_kernel(const __grid_constant__ CUtensorMap map,
                   const __grid_constant__ MoeGemmArgs args, int splits) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  __shared__ uint64_t full[C::kStages], empty[C::kStages];
  __shared__ OutputRows<Tokens> rows[2];
  const Tiles tiles(args, splits);
  if (tiles.begin >= tiles.end) return;  // the whole cluster does
  uint8_t* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  auto* staged = reinterpret_cast<uint16_t*>(shared + C::kStages * C::kStageBytes);
  auto* scales = reinterpret_cast<float*>(shared + C::kStages * C::kStageBytes + C::kStagedBytes);
  Stages<Tokens> stages{shared, scales, full, empty};
  if (threadIdx.x < C::kStages) {
    init_barrier(&full[threadIdx.x], C::kProducers + 1);
    init_barrier(&empty[threadIdx.x], kConsumers / 32);
  }
  fence_barrier_init();
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    produce<Tokens>(&map, args, tiles, stages);
    if (splits == 1) return;
    cluster_sync();
    cluster_sync();
    return;
  }
  int turn = 0;
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles.get(args, index);
    OutputRows<Tokens>& to = rows[turn];
    turn ^= 1;
    read_rows<Tokens>(args, tile.block, to);
    float sums[Tokens / 2];
    consume<Tokens>(args, tile, stages, sums);
    if (splits > 1) {
      write_cluster<Tokens>(args, tile, to, sums, reinterpret_cast<float*>(shared), tiles);
    } else {
      write_tile<Tokens>(args, tile, to, sums, staged);
    }
  }
}

int64_t most_tiles(const MoeGemmShape& s) {
  return (s.capacity() + s.block - 1) / s.block * ((s.n + kTileColumns - 1) / kTileColumns);
}

/// Parts of K: as many as there are SMs for, but four groups each at least.
int splits_of(const MoeGemmShape& s, const DeviceFacts& device) {
  if (s.block > 32) return 1;  // the parts would not fit
  int splits = 1;
  while (splits < kMaxSplits && most_tiles(s) * splits * 2 <= 2 * device.processors &&
         s.k_groups() / (splits * 2) >= 4)
    splits *= 2;
  return splits;
}

template <int Tokens>
void launch_tokens(const MoeGemmArgs& args, int splits, const Launch& where) {
  using C = Config<Tokens>;
  const auto kernel = swap_ab_kernel<Tokens>;
  allow_shared(kernel, C::kSharedBytes);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(splits), 1, 1};
  cudaLaunchConfig_t config = {};
  // Of a split product every block has one tile at most.
  const int64_t tiles = most_tiles(args.shape),
                resident = where.device.processors * C::kBlocksPerSm;
  config.gridDim = static_cast<unsigned>(splits > 1 ? tiles * splits : std::min(tiles, resident));
  config.blockDim = C::kThreads;
  config.dynamicSmemBytes = C::kSharedBytes;
  config.stream = static_cast<cudaStream_t>(where.stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, weights_map(args, kTileColumns), args, splits),
             "swap_ab_kernel");
}

}  // namespace

void launch_swap_ab(const MoeGemmArgs& args, SplitK split, const Launch& where) {
  const int splits = split == SplitK::never ? 1 : splits_of(args.shape, where.device);
  switch (args.shape.block) {
    case 16:
      return launch_tokens<16>(args, splits, where);
    case 32:
      return launch_tokens<32>(args, splits, where);
    case 64:
      return launch_tokens<64>(args, splits, where);
    default:
      return launch_tokens<128>(args, splits, where);
  }
}

namespace {

template <class P, bool Split>
void launch(P& problem, const Launch& where) {
  launch_swap_ab(problem.args(), Split ? SplitK::where_tiles_are_few : SplitK::never, where);
}

std::string unsupported(const MoeGemmShape& s) {
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.block != 16 && s.block != 32 && s.block != 64 && s.block != 128) {
    return fmt::format("block = {} is not 16, 32, 64 or 128", s.block);
  }
  if (s.k % kMoeGroup != 0) return fmt::format("K = {} is not a multiple of {}", s.k, kMoeGroup);
  if (s.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", s.n);
  return {};
}

template <class P, bool Split>
KernelSpec<P> spec() {
  return {
      .name = Split ? "swap_ab_split_k" : "swap_ab",
      .backend = Backend::cuda,
      .help = Split ? "wgmma with weights as M, K split over a cluster where SMs would idle"
                    : "wgmma with weights as M and routed rows as N, TMA and gathered rows",
      .launch = launch<P, Split>,
      .unsupported = [](const Case& c, const DeviceFacts&) { return unsupported(P::shape_of(c)); },
      .path =
          [](const Case& c, const DeviceFacts& device) {
            return Split ? fmt::format("{} splits", splits_of(P::shape_of(c), device))
                         : std::string();
          }};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp, false>());
const Kernel<MoeGateUp> gate_up_split(spec<MoeGateUp, true>());
const Kernel<MoeDown> down(spec<MoeDown, false>());

}  // namespace
}  // namespace gemm
}  // namespace moegate
