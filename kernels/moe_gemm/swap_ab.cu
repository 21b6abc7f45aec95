// SPDX-License-Identifier: Apache-2.0
// The fp8 grouped GEMMs with the operands swapped: 128 rows of an expert's weights are the M of
// wgmma, the BM routed rows of a block its N, so that few tokens waste no tensor-core rows and
// every weight is streamed once. Weights come by TMA, routed rows are gathered by asynchronous
// copies into the same swizzle; a warp (four where BM is large) copies, two warpgroups multiply, a
// ring of stages is between them. After each group of 128 along K the sums go from the tensor
// cores' accumulators to fp32 registers, times both scale factors: fp8 accumulation on Hopper keeps
// too few bits for more.
//
// swap_ab_split_k cuts K over the blocks of a cluster where the tiles alone would leave SMs idle
// (few tokens, long K), and adds the parts through distributed shared memory in their order: one
// launch, no atomics, no workspace, the same result every time.
#include <algorithm>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/pipeline.cuh"
#include "kernels/moe_gemm/weights_map.h"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate {
namespace gemm {
namespace {

constexpr int kTileColumns = 128;  // of the output: rows of weights
constexpr int kTileBytes = kTileColumns * kMoeGroup;
constexpr int kConsumers = 256;  // threads: two warpgroups
constexpr int kMaxSplits = 8;    // the largest cluster that needs no asking

/// What depends on the number of routed rows in a block.
template <int Tokens>
struct Config {
  static constexpr int kProducers = Tokens >= 64 ? 128 : 32;  // threads
  static constexpr int kThreads = kConsumers + kProducers;
  static constexpr int kBlocksPerSm = Tokens >= 128 ? 1 : 2;
  static constexpr int kStages = Tokens == 128 ? 6 : Tokens == 64 ? 4 : 5;
  static constexpr int kStageBytes = kTileBytes + Tokens * kMoeGroup;
  static constexpr int kRowsPerThread = Tokens * 8 / kProducers;  // 16 bytes of each
  static constexpr int kSharedBytes = 1024 + kStages * (kStageBytes + Tokens * 4);
};

/// The block's rows: where they come from and go to.
template <int Tokens>
struct BlockRows {
  int id[Tokens];      // row of out; R for padding
  int source[Tokens];  // row of x; -1 for padding
  float weight[Tokens];
};

template <int Tokens>
struct Stages {
  uint8_t* base;  // [kStages][weights, rows], 1024-byte aligned
  float* scales;  // [kStages][Tokens]
  uint64_t *full, *empty;
  int stage = 0;
  uint32_t phase = 0;

  __device__ uint8_t* weights() const { return base + stage * Config<Tokens>::kStageBytes; }
  __device__ uint8_t* rows() const { return weights() + kTileBytes; }
  __device__ float* row_scales() const { return scales + stage * Tokens; }
  __device__ void advance() {
    if (++stage < Config<Tokens>::kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

/// A block's place in the product.
struct Tile {
  int expert, column, first_group, groups;  // of K
};

template <int Tokens>
__device__ void read_rows(const MoeGemmArgs& args, int block, BlockRows<Tokens>& rows) {
  for (int i = threadIdx.x; i < Tokens; i += blockDim.x) {
    const int id = args.sorted_token_ids[block * Tokens + i];
    const bool there = id < args.shape.rows();
    rows.id[i] = id;
    rows.source[i] = there ? args.shape.source(id) : -1;
    rows.weight[i] = there && args.routing_weights ? args.routing_weights[id] : 1;
  }
}

/// Fills stages: one 128-wide slice of K of the weights and of the rows each.
template <int Tokens>
__device__ void produce(const CUtensorMap* map, const MoeGemmArgs& args, const Tile& tile,
                        const BlockRows<Tokens>& rows, Stages<Tokens> stages) {
  using C = Config<Tokens>;
  const int thread = threadIdx.x - kConsumers, piece = thread % 8;
  const auto* x = static_cast<const uint8_t*>(args.x);
  int64_t from[C::kRowsPerThread];
  uint32_t to[C::kRowsPerThread];
#pragma unroll
  for (int i = 0; i < C::kRowsPerThread; ++i) {
    const int row = thread / 8 + i * (C::kProducers / 8);
    from[i] = rows.source[row] < 0 ? -1 : int64_t{rows.source[row]} * args.shape.k + piece * 16;
    to[i] = row * kMoeGroup + ((piece ^ (row % 8)) * 16);  // the 128-byte swizzle
  }
  const int scale_source = thread < Tokens ? rows.source[thread] : -1;
  const int weight_row = tile.expert * args.shape.n + tile.column;
  for (int g = tile.first_group; g < tile.first_group + tile.groups; ++g, stages.advance()) {
    wait(&stages.empty[stages.stage], stages.phase ^ 1);
    uint64_t* full = &stages.full[stages.stage];
    if (thread == 0) {
      arrive_expecting(full, kTileBytes);
      copy_tile(shared_address(stages.weights()), map, g * kMoeGroup, weight_row, full);
    }
    const uint32_t at = shared_address(stages.rows());
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i)
      copy_async<16>(at + to[i], x + (from[i] < 0 ? 0 : from[i] + g * kMoeGroup), from[i] >= 0);
    if (thread < Tokens) {
      const int64_t scale =
          scale_source < 0 ? 0 : int64_t{scale_source} * args.shape.k_groups() + g;
      copy_async<4>(shared_address(stages.row_scales() + thread), args.x_scales + scale,
                    scale_source >= 0);
    }
    arrive_after_copies(full);
  }
}

/// Sums of 64 columns and all rows over the tile's groups, by one warpgroup.
template <int Tokens>
__device__ void consume(const MoeGemmArgs& args, const Tile& tile, Stages<Tokens> stages,
                        float (&sums)[Tokens / 2]) {
  const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32;
  const float* weight_scales = args.weight_scales + (int64_t{tile.expert} * args.shape.n_groups() +
                                                     tile.column / kMoeGroup) *
                                                        args.shape.k_groups();
  for (float& sum : sums) sum = 0;
  for (int g = tile.first_group; g < tile.first_group + tile.groups; ++g, stages.advance()) {
    const float weight_scale = __ldg(weight_scales + g);
    wait(&stages.full[stages.stage], stages.phase);
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
    if (lane == 0) arrive(&stages.empty[stages.stage]);
  }
}

/// Calls f(row, column of the tile, sum) for every sum that the thread holds.
template <int Tokens, class F>
__device__ void for_sums(const float (&sums)[Tokens / 2], F f) {
  const int lane = threadIdx.x % 32, column = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < Tokens / 2; ++i)
    f(i / 4 * 8 + lane % 4 * 2 + i % 2, column + i / 2 % 2 * 8, sums[i]);
}

__device__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

/// Through shared memory, so that every row is written in pieces of 16 bytes next to each other.
template <int Tokens>
__device__ void write_tile(const MoeGemmArgs& args, const Tile& tile, const BlockRows<Tokens>& rows,
                           const float (&sums)[Tokens / 2], uint8_t* shared) {
  constexpr int kPitch = kTileColumns + 8;  // rows begin in different banks
  auto* staged = reinterpret_cast<uint16_t*>(shared);
  sync_consumers();  // nobody reads the stages any more
  for_sums<Tokens>(sums, [&](int row, int column, float sum) {
    staged[row * kPitch + column] = float_to_bf16(sum * rows.weight[row]);
  });
  sync_consumers();
  constexpr int kPieces = kTileColumns / 8;
  for (int i = threadIdx.x; i < Tokens * kPieces; i += kConsumers) {
    const int row = i / kPieces, column = i % kPieces * 8;
    if (rows.source[row] < 0 || tile.column + column >= args.shape.n) continue;
    auto* to = args.out + int64_t{rows.id[row]} * args.shape.n + tile.column + column;
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staged + row * kPitch + column);
  }
}

/// Every block of the cluster has sums over its part of K; each adds up a share of the columns.
template <int Tokens>
__device__ void write_cluster(const MoeGemmArgs& args, const Tile& tile,
                              const BlockRows<Tokens>& rows, const float (&sums)[Tokens / 2],
                              uint8_t* shared, int rank, int splits) {
  constexpr int kPitch = kTileColumns + 4;
  auto* part = reinterpret_cast<float*>(shared);
  const bool consumer = threadIdx.x < kConsumers;
  if (consumer) {
    sync_consumers();
    for_sums<Tokens>(sums,
                     [&](int row, int column, float sum) { part[row * kPitch + column] = sum; });
  }
  cluster_sync();
  const int columns = kTileColumns / splits;
  for (int i = threadIdx.x; consumer && i < Tokens * columns; i += kConsumers) {
    const int row = i / columns, column = rank * columns + i % columns;
    if (rows.source[row] < 0 || tile.column + column >= args.shape.n) continue;
    float sum = 0;
    for (int other = 0; other < splits; ++other)
      sum += load_from_block(shared_address(part + row * kPitch + column), other);
    args.out[int64_t{rows.id[row]} * args.shape.n + tile.column + column] =
        float_to_bf16(sum * rows.weight[row]);
  }
  cluster_sync();  // a block's memory stays while others read it
}

template <int Tokens>
__global__ void __launch_bounds__(Config<Tokens>::kThreads, Config<Tokens>::kBlocksPerSm)
    swap_ab_kernel(const __grid_constant__ CUtensorMap map,
                   const __grid_constant__ MoeGemmArgs args, int splits) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  __shared__ uint64_t full[C::kStages], empty[C::kStages];
  __shared__ BlockRows<Tokens> rows;
  const int rank = blockIdx.x % splits, index = blockIdx.x / splits;
  const int tiles = (args.shape.n + kTileColumns - 1) / kTileColumns, block = index / tiles;
  if (block * Tokens >= *args.padded_rows) return;  // the whole cluster does
  const int groups = args.shape.k_groups(), first = rank * groups / splits;
  const Tile tile{args.expert_ids[block], index % tiles * kTileColumns, first,
                  (rank + 1) * groups / splits - first};

  uint8_t* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  Stages<Tokens> stages{shared, reinterpret_cast<float*>(shared + C::kStages * C::kStageBytes),
                        full, empty};
  read_rows<Tokens>(args, block, rows);
  if (threadIdx.x < C::kStages) {
    init_barrier(&full[threadIdx.x], C::kProducers + 1);
    init_barrier(&empty[threadIdx.x], kConsumers / 32);
  }
  fence_barrier_init();
  __syncthreads();
  float sums[Tokens / 2];
  if (threadIdx.x >= kConsumers) {
    produce<Tokens>(&map, args, tile, rows, stages);
  } else {
    consume<Tokens>(args, tile, stages, sums);
  }
  if (splits > 1) return write_cluster<Tokens>(args, tile, rows, sums, shared, rank, splits);
  if (threadIdx.x < kConsumers) write_tile<Tokens>(args, tile, rows, sums, shared);
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
  config.gridDim = static_cast<unsigned>(most_tiles(args.shape) * splits);
  config.blockDim = C::kThreads;
  config.dynamicSmemBytes = C::kSharedBytes;
  config.stream = static_cast<cudaStream_t>(where.stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, weights_map(args, kTileColumns), args, splits),
             "swap_ab_kernel");
}

template <class P, bool Split>
void launch(P& problem, const Launch& where) {
  const MoeGemmArgs args = problem.args();
  const int splits = Split ? splits_of(args.shape, where.device) : 1;
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
