// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (clusters)
// The router's logits for few tokens: K is cut over the 16 blocks of a cluster, two parts of it to
// each. Weights and rows of x go from memory straight into the fragments of mma.sync: a warp asks
// for all weights of its part, and the first eight tokens' x, before it waits for any. Its sums go
// to the block of the cluster that adds up their logits, through distributed shared memory.
//
// Cuts and sums follow from H alone (parts.cuh), so that a token's bits depend neither on its
// batch nor on how many tiles of 16 experts a block has, which follows from E, T and the GPU: one,
// or more where all of x would else be read by too many blocks.
//
// Floor: w from memory, 3.7 MB for 256 experts of 7168. At decode the launch, one wait for memory,
// and the way through the cluster. On an H100 (419b00d6) 3.7, 3.9 and 5.7 us at 1, 8 and 32 tokens,
// where cublaslt takes 6.8, 7.0 and 7.3 in two launches.
#include <algorithm>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/streaming.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/router_gemm/parts.cuh"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr int kBlocks = 16;  // of a cluster
constexpr int kBlockParts = kParts / kBlocks;
constexpr int kMostGroups = 8;      // of a part
constexpr int kMostTokenTiles = 8;  // of a cluster

/// What of a tile's sums reaches a block: of each part those of two lanes. Four floats more to the
/// next tile, so that threads which read several tiles' sums meet different banks.
constexpr int kTileInbox = kParts * 2 + 2;  // float4
constexpr int kTileInboxBytes = kParts * 2 * 16;
constexpr int kTileLogits = 8;  // of a tile, in a block

struct ClusterArgs {
  PackedArgs packed;
  int token_tiles;  // of a cluster, at most
  int unused = 0;   // in place of padding, whose bytes nobody writes
};
static_assert(std::has_unique_object_representations_v<ClusterArgs>, "a row's identity");

/// A warp's part of K and its tile of experts, which may lie behind the last.
template <int kGroups>
struct Part {
  const RouterGemmShape& shape;
  int first, groups;  // of K
  GroupOfExperts w[kGroups];

  __device__ Part(const PackedArgs& packed, int part, int tile)
      : shape(packed.args.shape),
        first(first_group(groups_of(shape), part)),
        groups(first_group(groups_of(shape), part + 1) - first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const uint8_t* from =
        packed.w + (int64_t{tile} * groups_of(shape) + first) * kGroupBytes + lane * 16;
    const int there = tile < expert_tiles(shape) ? groups : 0;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (i >= there) continue;
      w[i].first = load_streaming(from + i * kGroupBytes);
      w[i].second = load_streaming(from + i * kGroupBytes + kStepBytes);
    }
  }
  /// Zeros for tokens that are none, and behind K.
  __device__ void load_tokens(const uint16_t* x, int first_token, uint4 (&to)[kGroups]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, token = first_token + lane / 4;
    const int k = first * kGroup + lane % 4 * kPiece;
    const int there = token < shape.tokens ? shape.hidden - k : 0;
    const uint16_t* from = x + int64_t{token} * shape.hidden + k;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      to[i] = {0, 0, 0, 0};
      if (i < groups && i * kGroup < there) {
        to[i] = __ldg(reinterpret_cast<const uint4*>(from + i * kGroup));
      }
    }
  }
  __device__ float4 multiply_tokens(const uint4 (&x)[kGroups]) const {
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (i < groups) multiply_group(sums, w[i], x[i]);
    }
    return {sums[0], sums[1], sums[2], sums[3]};
  }
};

/// The logit that thread `i` of block `rank` adds up. Its tiles come one after the other: those of
/// tokens of the first tile of experts, then of the next.
struct Logit {
  int token, expert;
  bool is_one;  // of the operator's

  __device__ Logit(const RouterGemmShape& shape, int i, int rank, int first_expert, int first_token,
                   int expert_tiles, int token_tiles) {
    const int tile = i / kTileLogits, of_tile = i % kTileLogits;
    const int lane = rank * 2 + of_tile / 4, sum = of_tile % 4;
    expert = first_expert + tile / token_tiles * kTileExperts + lane / 4 + sum / 2 * 8;
    token = first_token + tile % token_tiles * kTileTokens + lane % 4 * 2 + sum % 2;
    is_one = tile < expert_tiles * token_tiles && expert < shape.experts && token < shape.tokens;
  }
};

/// Grid: blocks of a cluster, what clusters take of experts, and of tokens.
template <int kGroups, int kExpertTiles>
__global__ void __launch_bounds__(kBlockParts* kExpertTiles * 32)
    mma_cluster_kernel(const __grid_constant__ ClusterArgs cluster) {
  extern __shared__ float4 inbox[];  // [tiles, kTileInbox]
  __shared__ uint64_t arrived;
  const RouterGemmArgs& args = cluster.packed.args;
  const RouterGemmShape& shape = args.shape;
  const int rank = static_cast<int>(blockIdx.x);
  const int first_expert = static_cast<int>(blockIdx.y) * (kExpertTiles * kTileExperts);
  const int first_token = static_cast<int>(blockIdx.z) * (cluster.token_tiles * kTileTokens);
  const int token_tiles =
      min(cluster.token_tiles, (shape.tokens - first_token + kTileTokens - 1) / kTileTokens);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  if (thread == 0) prepare_inbox(&arrived, kExpertTiles * token_tiles * kTileInboxBytes);
  cluster_arrive();

  const int part = rank * kBlockParts + warp / kExpertTiles, expert_tile = warp % kExpertTiles;
  const Part<kGroups> of_warp(cluster.packed, part, first_expert / kTileExperts + expert_tile);
  uint4 even[kGroups], odd[kGroups];
  of_warp.load_tokens(args.x, first_token, even);
  const Logit logit(shape, thread, rank, first_expert, first_token, kExpertTiles, token_tiles);
  const float bias = logit.is_one ? args.bias_of(logit.expert) : 0;
  cluster_wait();  // all inboxes are ready
  float4* const slot = inbox + expert_tile * token_tiles * kTileInbox + part * 2 + lane % 2;
  const auto multiply_tile = [&](int tile, const uint4(&x)[kGroups], uint4(&next)[kGroups]) {
    if (tile + 1 < token_tiles) {
      of_warp.load_tokens(args.x, first_token + (tile + 1) * kTileTokens, next);
    }
    send(slot + tile * kTileInbox, &arrived, lane / 2, of_warp.multiply_tokens(x));
  };
  for (int tile = 0; tile < token_tiles; tile += 2) {
    multiply_tile(tile, even, odd);
    if (tile + 1 < token_tiles) multiply_tile(tile + 1, odd, even);
  }

  wait_inbox(&arrived);  // once all sums came, nobody touches this block's memory any more
  if (!logit.is_one) return;
  const float* const sums =
      reinterpret_cast<const float*>(inbox + thread / kTileLogits * kTileInbox) +
      thread % kTileLogits;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) sum += sums[i * 8];
  write_float(shape.out, args.logits, int64_t{logit.token} * shape.experts + logit.expert,
              sum + bias);
}

/// Of a block: the fewest of 1, 2 and 4 that leave no SM with two blocks, else 4.
int expert_tiles_of(const RouterGemmShape& shape, int token_blocks, int processors) {
  const int tiles = expert_tiles(shape);
  int of_block = 1;
  while (of_block < 4 && (tiles + of_block - 1) / of_block * token_blocks * kBlocks > processors) {
    of_block *= 2;
  }
  return of_block;
}

template <int kGroups, int kExpertTiles>
void launch_clusters(const ClusterArgs& cluster, int token_blocks, const Launch& where) {
  const int expert_blocks =
      (expert_tiles(cluster.packed.args.shape) + kExpertTiles - 1) / kExpertTiles;
  const auto kernel = mma_cluster_kernel<kGroups, kExpertTiles>;
  const auto shared =
      sizeof(float4) * static_cast<size_t>(kExpertTiles * cluster.token_tiles * kTileInbox);
  ClusterLaunch launch(kernel, expert_blocks * token_blocks, kBlocks,
                       kBlockParts * kExpertTiles * 32, shared, where.stream);
  launch.config.gridDim = {kBlocks, static_cast<unsigned>(expert_blocks),
                           static_cast<unsigned>(token_blocks)};
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, cluster), "mma_cluster_kernel");
}

void launch_mma_cluster(const PackedArgs& packed, const Launch& where) {
  const RouterGemmShape& shape = packed.args.shape;
  const int tiles = (shape.tokens + kTileTokens - 1) / kTileTokens;
  const int token_tiles = std::min(tiles, kMostTokenTiles);
  const int token_blocks = (tiles + token_tiles - 1) / token_tiles;
  const ClusterArgs cluster{packed, token_tiles};
  const int most_groups = (groups_of(shape) + kParts - 1) / kParts;
  const int of_block = expert_tiles_of(shape, token_blocks, where.device.processors);
  with_rows<1, 2, 4>(of_block, [&]<int kExpertTiles>() {
    with_rows<4, kMostGroups>(most_groups <= 4 ? 4 : kMostGroups, [&]<int kGroups>() {
      launch_clusters<kGroups, kExpertTiles>(cluster, token_blocks, where);
    });
  });
}

std::string cluster_unsupported(const RouterGemmShape& shape) {
  constexpr int kMost = kMostGroups * kParts * kGroup;
  if (shape.hidden > kMost) return fmt::format("takes H of up to {}, not {}", kMost, shape.hidden);
  return mma_unsupported(shape);
}

const Kernel<RouterGemm> kernel({
    .name = "mma_cluster",
    .backend = Backend::cuda,
    .help = "K cut over the 16 blocks of a cluster; operands from memory into registers, mma.sync",
    .launch = [](RouterGemm& problem,
                 const Launch& where) { launch_mma_cluster(packed_args(problem), where); },
    .prepare = pack_weights,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return cluster_unsupported(RouterGemmShape::of(c)); },
});

}  // namespace
}  // namespace moegate::router_gemm
