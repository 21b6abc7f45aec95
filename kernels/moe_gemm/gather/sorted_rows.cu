// SPDX-License-Identifier: Apache-2.0
// moe_gate_up as SGLang PR 10567 leaves it: scalar_b_scale, whose rows go to their places in
// sorted_token_ids instead of back to token order, so that the down projection finds the rows of a
// block next to each other (tma_down). Rows of padding are not written.
//
// It reads and writes as much as scalar_b_scale; only that a block's rows are neighbours is new.
// On an H200 as fast as scalar_b_scale; at one token (R1 gate-up, blocks of 16) both take 32 us
// where gather takes 31.6, and took 26.0 before blocks of 64 rows multiplied by wgmma (2026-11-24,
// commits 5c186c2, 5bd4a4e; 94 registers, were 118). Why is not known. As a "before" it is quick
// enough: vLLM's own kernel takes 1.10 to 1.14 times gather's time there (pr-aphrodite-1603.md).
// Floor and differences from Triton as in gather.
#include "kernels/moe_gemm/gather/tile.cuh"

namespace moegate::moe_gemm::gather {
namespace {

template <int Rows, DType kDtype>
__global__ void __launch_bounds__(Tile<Rows>::kThreads)
    sorted_rows_kernel(const __grid_constant__ MoeGemmArgs args, const TileOrder order) {
  const Place place = order.place(blockIdx.x);
  if (place.block * Rows >= *args.padded_rows) return;
  compute_tile<Rows, kDtype, WeightScale::per_tile, Result::sorted>(args, place);
}

void launch(MoeGateUp& problem, const Launch& where) {
  const MoeGemmArgs args = problem.args(RowOrder::tokens, RowOrder::sorted);
  const TileOrder order = tile_order(args.shape);
  with_tile(args.shape, [&]<int Rows, DType kDtype>() {
    const auto kernel = sorted_rows_kernel<Rows, kDtype>;
    allow_shared(kernel, Tile<Rows>::kSharedBytes);
    kernel<<<order.tiles(), Tile<Rows>::kThreads, Tile<Rows>::kSharedBytes, stream_of(where)>>>(
        args, order);
  });
  check_launch("sorted_rows_kernel");
}

const Kernel<MoeGateUp> gate_up({
    .name = "sorted_rows",
    .backend = Backend::cuda,
    .help = "scalar_b_scale with its output in sorted order (SGLang PR 10567)",
    .launch = launch,
    .prepare = [](MoeGateUp& problem, const Launch&) { problem.sort_output(); },
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return gather_unsupported(MoeGateUp::shape_of(c)); },
});

}  // namespace
}  // namespace moegate::moe_gemm::gather
