// SPDX-License-Identifier: Apache-2.0
// The router's logits as a plain tiled product: 128 experts by 64 tokens whatever their number, all
// of K in one chain of mma.sync. What other variants replace.
//
// Floor: that of tiles. For few tokens one or two SMs do all the work.
//
// Its factor: tensor cores cut what does not fit a sum instead of rounding it, one step in 16 of K,
// always towards zero: some 1e-5 of a logit at H = 7168, by which fp32 logits are too small.
#include "kernels/router_gemm/tile.cuh"

namespace moegate::router_gemm {
namespace {

const Kernel<RouterGemm> kernel({
    .name = "tile_mma",
    .backend = Backend::cuda,
    .help = "tiles of 128 experts by 64 tokens, all of K in one chain of mma.sync",
    .launch = [](RouterGemm& problem,
                 const Launch& where) { launch_tile<Tile<64>>(packed_args(problem), where); },
    .prepare = pack_weights,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
    .tolerance = 4,
});

}  // namespace
}  // namespace moegate::router_gemm
