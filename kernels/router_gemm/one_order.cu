// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The router's logits by whichever of mma_cluster and tiles has the better number of tokens. They
// add in one order (parts.cuh), so that a token's bits are the same on both sides of the crossing.
#include "kernels/router_gemm/launches.h"

namespace moegate::router_gemm {
namespace {

/// mma_cluster's time grows with tokens and experts from a wave of blocks on, that of tiles later.
/// On an H100 they crossed at 56 tokens for 32 experts, which a tile has in one. On H200s they take
/// 6.0 and 5.7 us for those at 128 tokens, for 128 experts 6.1 and 5.8 at 64, 6.6 and 7.2 at 128,
/// for 256 of 7168 7.8 and 8.8 at 64, 15.6 and 16.6 (in two waves) at 128, 39 and 25 at 512.
bool is_for_cluster(const RouterGemmShape& shape) {
  constexpr int kFewTokens = 48, kOneTile = 32, kTokensTimesExperts = 1 << 15;
  const bool few =
      shape.tokens <= kFewTokens ||
      (shape.experts > kOneTile && int64_t{shape.tokens} * shape.experts <= kTokensTimesExperts);
  return few && cluster_unsupported(shape).empty();
}

const Kernel<RouterGemm> kernel({
    .name = "one_order",
    .backend = Backend::cuda,
    .help = "mma_cluster for few tokens, tiles for many: the same sums",
    .launch =
        [](RouterGemm& problem, const Launch& where) {
          is_for_cluster(problem.shape) ? launch_mma_cluster(packed_args(problem), where)
                                        : launch_tiles(row_args(problem), where);
        },
    .prepare =
        [](RouterGemm& problem, const Launch& where) {
          is_for_cluster(problem.shape) ? pack_weights(problem, where) : pack_rows(problem, where);
        },
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
    .path = [](const Case& c, const DeviceFacts&) -> std::string {
      return is_for_cluster(RouterGemmShape::of(c)) ? "mma_cluster" : "tiles";
    },
});

}  // namespace
}  // namespace moegate::router_gemm
