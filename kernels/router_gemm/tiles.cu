// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The router's logits for many tokens: tiles of 32 to 128 experts by 64 or 128 tokens, whose K is
// cut over up to 16 blocks of a cluster, so that few tiles keep all SMs busy (split_tile.cuh). Sums
// are cut and added as mma_cluster does it (parts.cuh): their bits agree, and depend neither on the
// tile nor on how many blocks share it.
//
// Floor: x from memory, 117 MB for 8192 tokens of 7168, or the products where experts are many.
// Between them what SMs get from L2: tiles of a cluster with the same rows get one copy.
//
// On an H100 (419b00d6), us at 64, 512, 2048 and 8192 tokens, cublaslt in brackets: 32 experts of
// 2880 5.5, 7.1, 20.0, 20.8 (7.1, 7.4, 9.5, 18.4), 256 of 7168 9.0, 24.5, 70.5, 124 (7.4, 11.3,
// 19.8, 47.3). So cuBLAS stays ahead where tokens are many. Plain tiles of mma.sync took 55 and 108
// us there, with the same bits (e72a34ec): the plan for many tokens is not right yet, and it was
// not profiled. Sums of parts, up to 262 KB for an SM, are the price of one order.
#include <algorithm>

#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/router_gemm/launches.h"
#include "kernels/router_gemm/split_tile.cuh"

namespace moegate::router_gemm {
namespace {

constexpr int kMostBlocks = 16;  // of a cluster
constexpr int kMostWhole = 8;    // of one whose blocks have all of K

int tiles_of(int all, int tile) {
  return (all + tile - 1) / tile;
}

/// A tile, how many blocks share one, and how many tiles a cluster has.
struct TilePlan {
  int tokens, experts;
  int blocks = 1, expert_tiles = 1, token_tiles = 1;

  int tiles_of_experts(const RouterGemmShape& shape) const {
    return tiles_of(shape.experts, experts);
  }
  int tiles_of_tokens(const RouterGemmShape& shape) const { return tiles_of(shape.tokens, tokens); }
  int tiles(const RouterGemmShape& shape) const {
    return tiles_of_experts(shape) * tiles_of_tokens(shape);
  }
  int size() const { return blocks * expert_tiles * token_tiles; }
  int clusters(const RouterGemmShape& shape) const { return tiles(shape) * blocks / size(); }
};

/// Whether waves of so many tiles keep three of four SMs busy.
bool fills(int tiles, int processors) {
  return 4 * tiles >= 3 * processors * tiles_of(tiles, processors);
}

/// One block to each of the largest tiles that fill the GPU so, else as many of up to `most` blocks
/// as fit, of the smallest tile for which `most` do. No tile is wider than need be; narrow ones
/// read x too often for all of K.
TilePlan tile_of(const RouterGemmShape& shape, int most, int processors) {
  constexpr TilePlan kTiles[] = {{64, 32}, {64, 64}, {64, 128}, {128, 128}};
  int allowed = 1;
  while (allowed < 4 && kTiles[allowed].experts < 2 * shape.experts) ++allowed;
  for (int i = allowed - 1; i >= std::min(1, allowed - 1); --i) {
    if (fills(kTiles[i].tiles(shape), processors)) return kTiles[i];
  }
  int i = 0;
  while (i + 1 < allowed && kTiles[i].tiles(shape) * most > processors) ++i;
  TilePlan plan = kTiles[i];
  plan.blocks = most;
  while (plan.blocks > 1 && plan.tiles(shape) * plan.blocks > processors) plan.blocks /= 2;
  return plan;
}

/// With as many neighbours as make a cluster of `most` blocks, or fewer where K is not cut.
TilePlan plan_of(const RouterGemmShape& shape, int most, int processors) {
  TilePlan plan = tile_of(shape, most, processors);
  const int most_size = plan.blocks > 1 ? most : std::min(most, kMostWhole);
  if (plan.size() < most_size && plan.tiles_of_experts(shape) % 2 == 0) plan.expert_tiles = 2;
  while (plan.size() < most_size && plan.tiles_of_tokens(shape) % (2 * plan.token_tiles) == 0 &&
         plan.experts / plan.token_tiles > 16) {
    plan.token_tiles *= 2;
  }
  return plan;
}

/// False, without a launch: the GPU does not hold all clusters at once, and may be asked to.
template <class T>
bool launch_plan(const TilePlan& plan, bool ask, const PackedArgs& rows, const Launch& where) {
  const RouterGemmShape& shape = rows.args.shape;
  const auto kernel = tiles_kernel<T>;
  const auto shared = kSharedBytes<typename T::Shared>;
  const int clusters = plan.clusters(shape);
  ClusterLaunch launch(kernel, clusters, plan.size(), T::kThreads, shared, where.stream);
  if (ask && clusters > resident_clusters(kernel, plan.size(), T::kThreads, shared, where.device)) {
    return false;
  }
  const TileWork work{rows.args, plan.blocks, plan.expert_tiles, plan.token_tiles,
                      plan.tiles_of_experts(shape) / plan.expert_tiles};
  const CUtensorMap x =
      matrix_map(rows.args.x, shape.tokens, shape.hidden * 2, T::kTokens / plan.expert_tiles);
  const CUtensorMap w = matrix_map(rows.w, int64_t{expert_tiles(shape)} * kTileExperts,
                                   groups_of(shape) * kGroup * 2, T::kExperts / plan.token_tiles);
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, x, w, work), "tiles_kernel");
  return true;
}

template <bool kCut>
bool launch_form(const TilePlan& plan, bool ask, const PackedArgs& rows, const Launch& where) {
  if (plan.tokens == 128) return launch_plan<CutTile<2, 1, 128, kCut>>(plan, ask, rows, where);
  if (plan.experts == 128) return launch_plan<CutTile<1, 2, 128, kCut>>(plan, ask, rows, where);
  if (plan.experts == 64) return launch_plan<CutTile<1, 2, 64, kCut>>(plan, ask, rows, where);
  return launch_plan<CutTile<1, 1, 32, kCut>>(plan, ask, rows, where);
}

}  // namespace

/// Clusters of 16 blocks where all of them fit the GPU at once, which is up to the size of its
/// GPCs, else of eight.
void launch_tiles(const PackedArgs& rows, const Launch& where) {
  const auto launch = [&](int most, bool ask) {
    const TilePlan plan = plan_of(rows.args.shape, most, where.device.processors);
    return plan.blocks > 1 ? launch_form<true>(plan, ask && plan.size() > 8, rows, where)
                           : launch_form<false>(plan, false, rows, where);
  };
  if (!launch(kMostBlocks, true)) launch(kMostBlocks / 2, false);
}

namespace {

const Kernel<RouterGemm> kernel({
    .name = "tiles",
    .backend = Backend::cuda,
    .help = "tiles of tokens by experts, K cut over a cluster, TMA; the sums of mma_cluster",
    .launch = [](RouterGemm& problem,
                 const Launch& where) { launch_tiles(row_args(problem), where); },
    .prepare = pack_rows,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
});

}  // namespace
}  // namespace moegate::router_gemm
