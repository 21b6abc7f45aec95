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
#include <map>
#include <mutex>
#include <tuple>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/swap_ab.h"
#include "kernels/moe_gemm/swap_ab_output.cuh"
#include "kernels/moe_gemm/swap_ab_tiles.cuh"
#include "kernels/moe_gemm/weights_map.h"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate {
namespace gemm {
namespace {

/// The rows of x that a producer thread copies 16 bytes of, and the one whose scale factors.
template <class C>
struct Gather {
  int block = -1, expert;
  int64_t from[C::kRowsPerThread];  // element of x; negative for padding
  int64_t scale;

  __device__ void load(const MoeGemmArgs& args, int row_block, int thread) {
    if (row_block == block) return;
    block = row_block;
    expert = __ldg(args.expert_ids + block);
    const auto source = [&](int row) {
      const int id = __ldg(args.sorted_token_ids + block * C::kTokens + row);
      return id < args.shape.rows() ? args.shape.source(id) : -1;
    };
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i)
      from[i] =
          int64_t{source(thread / 8 + i * (C::kRowThreads / 8))} * args.shape.k + thread % 8 * 16;
    scale = thread < C::kTokens ? int64_t{source(thread)} * args.shape.k_groups() : -1;
  }
};

/// Starts the copy of a stage's weights: rows of one expert from `column` on.
template <class C>
__device__ void copy_weights(const Stages<C>& stages, const CUtensorMap* map,
                             const MoeGemmArgs& args, int expert, int column, int group) {
  arrive_expecting(stages.full(), C::kTileBytes);
  copy_tile(shared_address(stages.weights()), map, group * kMoeGroup,
            expert * args.shape.n + column, stages.full());
}

/// Fills stages with weights, by one thread: all that these wait for is the expert.
template <class C>
__device__ void produce_weights(const CUtensorMap* map, const MoeGemmArgs& args, const Cut& cut,
                                Stages<C> stages) {
  int block = likely_row_block<C>(args.shape, cut), expert = __ldg(args.expert_ids + block);
  const Tiles<C> tiles(args.shape, cut.splits, __ldg(args.padded_rows) / C::kTokens);
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles[index];
    if (tile.block != block) expert = __ldg(args.expert_ids + (block = tile.block));
    for (int g = 0; g < tile.groups; ++g, stages.advance()) {
      wait_barrier(stages.empty(), stages.phase ^ 1);
      copy_weights(stages, map, args, expert, tile.column, tile.first_group + g);
    }
  }
}

/// Starts the copies of a stage's rows and of its scale factors.
template <class C>
__device__ void copy_rows(const Stages<C>& stages, const MoeGemmArgs& args, const Gather<C>& gather,
                          const float* weight_scales, int g, int thread) {
  const auto* x = static_cast<const uint8_t*>(args.x);
  const uint32_t at = shared_address(stages.rows());
#pragma unroll
  for (int i = 0; i < C::kRowsPerThread; ++i) {
    const int row = thread / 8 + i * (C::kRowThreads / 8);
    const bool there = gather.from[i] >= 0;
    copy_async<16>(at + row * kMoeGroup + ((thread % 8 ^ row % 8) * 16),  // 128-byte swizzle
                   x + (there ? gather.from[i] + g * kMoeGroup : 0), there);
  }
  if (thread < C::kTokens) {
    const bool there = gather.scale >= 0;
    copy_async<4>(shared_address(stages.row_scales() + thread),
                  args.x_scales + (there ? gather.scale + g : 0), there);
  }
  if (thread == C::kRowThreads - 1)
    copy_async<4>(shared_address(stages.weight_scale()), weight_scales + g, true);
  arrive_after_copies(stages.full());
}

/// Fills stages with what depends on the rows; where these are many, with weights, too.
template <class C>
__device__ void produce_rows(const CUtensorMap* map, const MoeGemmArgs& args, const Cut& cut,
                             Stages<C> stages) {
  const int thread = threadIdx.x - C::kConsumers;
  Gather<C> gather;
  if constexpr (C::kFewRows) gather.load(args, likely_row_block<C>(args.shape, cut), thread);
  const Tiles<C> tiles(args.shape, cut.splits, __ldg(args.padded_rows) / C::kTokens);
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles[index];
    gather.load(args, tile.block, thread);
    const float* weight_scales =
        args.weight_scales +
        (int64_t{gather.expert} * args.shape.n_groups() + tile.column / kMoeGroup) *
            args.shape.k_groups();
    for (int i = 0; i < tile.groups; ++i, stages.advance()) {
      const int g = tile.first_group + i;
      wait_barrier(stages.empty(), stages.phase ^ 1);
      if (!C::kFewRows && thread == 0)
        copy_weights(stages, map, args, gather.expert, tile.column, g);
      copy_rows(stages, args, gather, weight_scales, g, thread);
    }
  }
}

/// Sums of 64 columns and all rows over the tile's groups, by one warpgroup.
template <class C>
__device__ void consume(const Tile& tile, Stages<C>& stages, float (&sums)[C::kTokens / 2]) {
  constexpr int kTokens = C::kTokens;
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
  for (float& sum : sums) sum = 0;
  for (int i = 0; i < tile.groups; ++i, stages.advance()) {
    wait_barrier(stages.full(), stages.phase);
    fence_for_products();
    const uint64_t a = operand(shared_address(stages.weights() + warpgroup * 64 * kMoeGroup));
    const uint64_t b = operand(shared_address(stages.rows()));
    float acc[kTokens / 2];
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k) multiply<kTokens>(acc, a + 2 * k, b + 2 * k, k > 0);
    commit_products();
    wait_products();
    const float weight_scale = *stages.weight_scale();
    const float* scales = stages.row_scales() + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kTokens / 8; ++j) {
      const float2 pair = *reinterpret_cast<const float2*>(scales + j * 8);
      const float first = pair.x * weight_scale, second = pair.y * weight_scale;
      sums[4 * j] += acc[4 * j] * first;
      sums[4 * j + 1] += acc[4 * j + 1] * second;
      sums[4 * j + 2] += acc[4 * j + 2] * first;
      sums[4 * j + 3] += acc[4 * j + 3] * second;
    }
    __syncwarp();
    if (lane == 0) arrive_barrier(stages.empty());
  }
}

/// Multiplies what comes, and sends the sums away.
template <class C, class Output>
__device__ void multiply_tiles(const MoeGemmArgs& args, const Cut& cut, Stages<C> stages) {
  const Tiles<C> tiles(args.shape, cut.splits, __ldg(args.padded_rows) / C::kTokens);
  Output output(args, cut, stages.shared);
  for (int index = tiles.begin; index < tiles.end; index += tiles.step) {
    const Tile tile = tiles[index];
    const int next = index + tiles.step;
    output.begin(tile, next < tiles.end ? tiles[next].block : -1);
    float sums[C::kTokens / 2];
    consume<C>(tile, stages, sums);
    output.write(tile, sums);
  }
}

template <class C>
__device__ void init_barriers(uint8_t* shared) {
  const int thread = threadIdx.x;
  if (thread < C::kStages) {
    Stages<C> stages{shared, thread};
    init_barrier(stages.full(), C::kRowThreads + 1);
    init_barrier(stages.empty(), C::kConsumers / 32);
  }
  if (C::kSplit && thread < 2) init_barrier(&arrived_barriers<C>(shared)[thread], 1);
  fence_barrier_init();
  // No block of a cluster sends before all have come here, or is gone before they have.
  if constexpr (C::kSplit) cluster_arrive();
  __syncthreads();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    swap_ab_kernel(const __grid_constant__ CUtensorMap map,
                   const __grid_constant__ MoeGemmArgs args, const Cut cut) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const int role = threadIdx.x / 32 - C::kConsumers / 32;  // warps from the first that copies on
  if (role == 0 && threadIdx.x % 32 == 0) prefetch_map(&map);
  init_barriers<C>(shared);
  const Stages<C> stages{shared};
  if (role < 0) {
    using Output = std::conditional_t<C::kFewRows, WarpOutput<C>, StagedOutput<C>>;
    multiply_tiles<C, Output>(args, cut, stages);
    return;
  }
  if (role < C::kRowThreads / 32) {
    produce_rows<C>(&map, args, cut, stages);
  } else if (threadIdx.x % 32 == 0) {
    produce_weights<C>(&map, args, cut, stages);
  }
  __syncwarp();
  if constexpr (C::kSplit) cluster_wait();
}

/// Calls f with the configuration of a tile of swap_ab_tiles().
template <class F>
auto with_config(int block, const SwapAbTile& tile, F f) {
  const auto few_rows = [&]<int Tokens, int Columns>() {
    const bool split = tile.splits > 1;
    if (tile.blocks_per_sm == 1) {
      return split ? f(Config<Tokens, Columns, true, 1>()) : f(Config<Tokens, Columns, false, 1>());
    }
    return split ? f(Config<Tokens, Columns, true, 2>()) : f(Config<Tokens, Columns, false, 2>());
  };
  const bool wide = tile.columns == 128;
  if (block == 16) {
    return wide ? few_rows.template operator()<16, 128>() : few_rows.template operator()<16, 64>();
  }
  if (block == 32) {
    return wide ? few_rows.template operator()<32, 128>() : few_rows.template operator()<32, 64>();
  }
  return block == 64 ? f(Config<64, 128, false, 2>()) : f(Config<128, 128, false, 1>());
}

/// A launch but for its arguments. Refers to itself: stays where it is made.
template <class C>
struct Geometry {
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = {};

  Geometry(int splits, int clusters) {
    allow_shared(swap_ab_kernel<C>, C::kSharedBytes);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(splits), 1, 1};
    config.gridDim = static_cast<unsigned>(splits * clusters);
    config.blockDim = C::kThreads;
    config.dynamicSmemBytes = C::kSharedBytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  Geometry(const Geometry&) = delete;
};

/// Clusters that an idle GPU holds at once; asked of the driver once, as whole clusters may leave
/// some of a GPC's SMs unused. Without a GPU as many as there are SMs for.
int resident_clusters(int block, const SwapAbTile& tile, const DeviceFacts& device) {
  const int blocks = device.processors * tile.blocks_per_sm;
  if (tile.splits == 1 || device.backend != Backend::cuda) return blocks / tile.splits;
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int, std::string>, int> known;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace({device.uuid, block, text(tile)}, 0);
  if (is_new) {
    at->second = with_config(block, tile, [&]<class C>(C) {
      const Geometry<C> geometry(tile.splits, 1);
      int clusters = 0;
      check_cuda(cudaOccupancyMaxActiveClusters(&clusters, swap_ab_kernel<C>, &geometry.config),
                 "cudaOccupancyMaxActiveClusters");
      return clusters;
    });
  }
  return at->second;
}

SwapAbTile tile_for(const MoeGemmShape& s, bool split, const DeviceFacts& device) {
  std::vector<SwapAbTile> tiles = swap_ab_tiles(s);
  if (!split) std::erase_if(tiles, [](auto& t) { return t.splits > 1 || t.columns < 128; });
  return choose_swap_ab_tile(s, tiles, device.processors, [&](const SwapAbTile& tile) {
    return resident_clusters(s.block, tile, device);
  });
}

template <class P, bool Split>
void launch(P& problem, const Launch& where) {
  const MoeGemmArgs args = problem.args();
  launch_swap_ab(args, tile_for(args.shape, Split, where.device), where);
}

std::string unsupported(const MoeGemmShape& s, bool split) {
  constexpr int kFewestGroups = 4;
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.block != 16 && s.block != 32 && s.block != 64 && s.block != 128) {
    return fmt::format("block = {} is not 16, 32, 64 or 128", s.block);
  }
  if (s.k % kMoeGroup != 0) return fmt::format("K = {} is not a multiple of {}", s.k, kMoeGroup);
  if (split && s.k_groups() < kFewestGroups) {
    return fmt::format("K = {} is too short to be cut: below {}", s.k, kFewestGroups * kMoeGroup);
  }
  if (s.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", s.n);
  return {};
}

template <class P, bool Split>
KernelSpec<P> spec() {
  return {.name = Split ? "swap_ab_split_k" : "swap_ab",
          .backend = Backend::cuda,
          .help = Split ? "wgmma with weights as M, K split over a cluster where SMs would idle"
                        : "wgmma with weights as M and routed rows as N, TMA and gathered rows",
          .launch = launch<P, Split>,
          .unsupported = [](const Case& c,
                            const DeviceFacts&) { return unsupported(P::shape_of(c), Split); },
          .path =
              [](const Case& c, const DeviceFacts& device) {
                return text(tile_for(P::shape_of(c), Split, device));
              }};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp, false>());
const Kernel<MoeGateUp> gate_up_split(spec<MoeGateUp, true>());
const Kernel<MoeDown> down(spec<MoeDown, false>());
const Kernel<MoeDown> down_split(spec<MoeDown, true>());

}  // namespace
}  // namespace gemm

void launch_swap_ab(const MoeGemmArgs& args, const SwapAbTile& tile, const Launch& where) {
  using namespace gemm;
  const MoeGemmShape& s = args.shape;
  const auto row_blocks = static_cast<int>(s.capacity() / s.block);
  const int64_t tiles = int64_t{row_blocks} * ((s.n + tile.columns - 1) / tile.columns);
  const int64_t clusters =
      std::clamp<int64_t>(resident_clusters(s.block, tile, where.device), 1, tiles);
  with_config(s.block, tile, [&]<class C>(C) {
    Geometry<C> geometry(tile.splits, static_cast<int>(clusters));
    geometry.config.stream = static_cast<cudaStream_t>(where.stream);
    check_cuda(
        cudaLaunchKernelEx(&geometry.config, swap_ab_kernel<C>, weights_map(args, C::kColumns),
                           args, Cut{tile.splits, row_blocks}),
        "swap_ab_kernel");
  });
}

}  // namespace moegate
