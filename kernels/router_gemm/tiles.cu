// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The router's logits for many tokens: tiles of 32 to 128 experts by 64 or 128 tokens, whose K is
// cut over up to 16 blocks of a cluster, so that few tiles keep all SMs busy (tiles_plan.h). Sums
// are cut and added as mma_cluster does it (parts.cuh): their bits agree, and depend neither on the
// tile nor on how many blocks share it.
//
// Floor: x from memory, 117 MB for 8192 tokens of 7168, or the products where experts are many. In
// between is shared memory: a stage of a tile of 128 by 128 writes 32 KB and reads 32 KB of w and
// 16 KB of x, 640 cycles, where the tensor cores take 512.
//
// On four H200s of a host (ebb0d8ad), us, cublaslt and the loop before in brackets: 32 experts of
// 2880 at 128 and 2048 tokens 5.7, 17.0 (7.1, 8.3; 5.3, 19.6), 256 of 7168 at 512, 2048 and 8192
// 24.5, 33.7, 52.7 (9.5, 15.4, 40.0; 25.1, 71.5, 123). Half of that is the plan: a GPU with 132 SMs
// held 66 clusters of 2, 30 of 4, 15 of 8 and 7 of 16, so that clusters as for all SMs took two
// waves, also with this loop (65.7 and 103). Small cases lost 5 to 9 %, see the gallery's page.
//
// Left out, at 512, 2048 and 8192 tokens of 256 x 7168: clusters of at most 4 tiles 23.9, 65.5,
// 103; of 2 24.0, 33.5, 52.7; all of K in each block 56.8, 65.5, 103; K over fewer blocks 31.4,
// 79.8, 115; four warpgroups in a tile 23.9, 65.7, 120. All of K in tiles of 16 experts took 14.7
// for 32 of 2880 at 2048 tokens, but as long at 128: worse where K is longer or tokens are fewer.
#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/router_gemm/launches.h"
#include "kernels/router_gemm/ring_tile.cuh"
#include "kernels/router_gemm/tiles_plan.h"

namespace moegate::router_gemm {
namespace {

template <class T>
constexpr size_t kBytes = kSharedBytes<typename T::Shared>;

/// Calls `use` with the RingTile of a plan.
template <class Use>
auto with_tile(const TilePlan& plan, const Use& use) {
  const auto of = [&]<bool kCut>(std::bool_constant<kCut>) {
    if (plan.tokens == 128) return use(RingTile<2, 1, 128, kCut>());
    if (plan.experts == 128) return use(RingTile<1, 2, 128, kCut>());
    if (plan.experts == 64) return use(RingTile<1, 2, 64, kCut>());
    return use(RingTile<1, 1, 32, kCut>());
  };
  return plan.blocks > 1 ? of(std::true_type()) : of(std::false_type());
}

template <class T>
void launch_plan(const TilePlan& plan, const PackedArgs& rows, const Launch& where) {
  const RouterGemmShape& shape = rows.args.shape;
  const auto kernel = ring_tiles_kernel<T>;
  ClusterLaunch launch(kernel, plan.clusters(shape), plan.size(), T::kThreads, kBytes<T>,
                       where.stream);
  const TileWork work{rows.args, plan.blocks, plan.expert_tiles, plan.token_tiles,
                      plan.tiles_of_experts(shape) / plan.expert_tiles};
  const CUtensorMap x =
      matrix_map(rows.args.x, shape.tokens, shape.hidden * 2, T::kTokens / plan.expert_tiles);
  const CUtensorMap w = matrix_map(rows.w, int64_t{expert_tiles(shape)} * kTileExperts,
                                   groups_of(shape) * kGroup * 2, T::kExperts / plan.token_tiles);
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel, x, w, work), "ring_tiles_kernel");
}

}  // namespace

void launch_tiles(const PackedArgs& rows, const Launch& where) {
  const TilePlan plan =
      plan_tiles(rows.args.shape, where.device.processors, [&](const TilePlan& asked) {
        return with_tile(asked, [&]<class T>(T) {
          return resident_clusters(ring_tiles_kernel<T>, asked.size(), T::kThreads, kBytes<T>,
                                   where.device);
        });
      });
  with_tile(plan, [&]<class T>(T) { launch_plan<T>(plan, rows, where); });
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
