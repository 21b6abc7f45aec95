// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (clusters)
// The router's logits by whichever of mma_cluster and tiles has the better number of tokens. They
// add in one order (parts.cuh), so that a token's bits are the same on both sides of the crossing.
#include "kernels/router_gemm/launches.h"

namespace moegate::router_gemm {
namespace {

constexpr int kFewTokens = 1024;

bool is_for_cluster(const RouterGemmShape& shape) {
  return shape.tokens <= kFewTokens && cluster_unsupported(shape).empty();
}

const Kernel<RouterGemm> kernel({
    .name = "one_order",
    .backend = Backend::cuda,
    .help = "mma_cluster for few tokens, tiles for many: the same sums",
    .launch =
        [](RouterGemm& problem, const Launch& where) {
          const PackedArgs packed = packed_args(problem);
          is_for_cluster(packed.args.shape) ? launch_mma_cluster(packed, where)
                                            : launch_tiles(packed, where);
        },
    .prepare = pack_weights,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
    .path = [](const Case& c, const DeviceFacts&) -> std::string {
      return is_for_cluster(RouterGemmShape::of(c)) ? "mma_cluster" : "tiles";
    },
});

}  // namespace
}  // namespace moegate::router_gemm
