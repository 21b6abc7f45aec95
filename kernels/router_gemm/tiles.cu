// SPDX-License-Identifier: Apache-2.0
// The router's logits for many tokens: tiles of 128 experts by 128, 64 or 32 tokens, both operands
// through a ring in shared memory. Sums are cut and added as mma_cluster does it (parts.cuh), which
// takes registers for two sums of each logit; their bits agree.
//
// Floor: x from memory, 117 MB for 8192 tokens of 7168, or the products where experts are many.
#include "kernels/router_gemm/tile.cuh"

namespace moegate::router_gemm {

/// As many tokens to a tile as leave three of four SMs one.
void launch_tiles(const PackedArgs& packed, const Launch& where) {
  const RouterGemmShape& shape = packed.args.shape;
  const auto fills = [&](int tokens) {
    const int blocks =
        (shape.experts + kExperts - 1) / kExperts * ((shape.tokens + tokens - 1) / tokens);
    return 4 * blocks >= 3 * where.device.processors;
  };
  if (fills(128)) return launch_tile<Tile<128>, true>(packed, where);
  if (fills(64)) return launch_tile<Tile<64>, true>(packed, where);
  launch_tile<Tile<32>, true>(packed, where);
}

namespace {

const Kernel<RouterGemm> kernel({
    .name = "tiles",
    .backend = Backend::cuda,
    .help = "tiles of 128 experts by 32 to 128 tokens, mma.sync; the sums of mma_cluster",
    .launch = [](RouterGemm& problem,
                 const Launch& where) { launch_tiles(packed_args(problem), where); },
    .prepare = pack_weights,
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
});

}  // namespace
}  // namespace moegate::router_gemm
