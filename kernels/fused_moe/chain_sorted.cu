// SPDX-License-Identifier: Apache-2.0
// The layer for many rows per expert, in sorted order between align and sum: redundant_count, gate-up
// by prefill with activation and quantisation in it (activations.cuh), down by prefill with tiles of
// rows in and out by the copy engine, and a sum that finds a token's rows by their places. Four
// launches, each of which is set up while the one before ends. h is never in memory, which for R rows
// saves 8 * R * I bytes.
#include "kernels/fused_moe/sorted_parts.h"
#include "kernels/moe_sum/launches.h"

namespace moegate::fused_moe {
namespace {

void launch(FusedMoe& problem, const Launch& where) {
  const SortedLayer layer = launch_up_to_codes(problem, where);
  moe_gemm::prefill::launch_sorted_rows(layer.down(), layer.down_cluster(), where);
  moe_sum::launch_at_places(sum(layer.args, layer.buffers), layer.buffers.places, where);
}

const Kernel<FusedMoe> kernel({
    .name = "chain_sorted",
    .backend = Backend::cuda,
    .help = "silu and quantisation in gate-up, rows in sorted order up to the sum, by prefill",
    .launch = launch,
    .workspace = sorted_workspace,
    .unsupported = sorted_unsupported,
    .path = sorted_path,
    .tolerance = FusedMoe::kOtherSums,
});

}  // namespace
}  // namespace moegate::fused_moe
