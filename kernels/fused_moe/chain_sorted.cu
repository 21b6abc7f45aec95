// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (its products)
// The layer for many rows per expert, in sorted order between align and sum: redundant_count,
// gate-up by prefill with activation and quantisation in it (activations.cuh), down by prefill with
// tiles of rows in and out by the copy engine, and a sum that finds a token's rows by their places.
// Four launches, each of which is set up while the one before ends. h is never in memory, which for
// R rows saves 8 * R * I bytes.
//
// Measured on an H200, cold, in a graph, us, and percent of the sum of the steps' floors (report
// `layer`, reports/gallery/nvidia-h200-prefill.md; 2026-11-23, commit 8b0a37d, protocol 1, three
// processes):
//  tokens            R1 TP8: 1024       4096       8192    Qwen3-30B: 1024       4096       8192
//  chain_tuned       423 (84 %)   762 (69 %)  1314 (64 %)      201 (74 %)   457 (55 %)   821 (60 %)
//  chain_fused_sum   404 (88 %)   669 (78 %)  1127 (75 %)      196 (76 %)   435 (57 %)   779 (64 %)
//  chain_sorted      418 (85 %)   738 (71 %)  1224 (69 %)      188 (80 %)   434 (57 %)   782 (64 %)
//  chain_sorted_sum  406 (88 %)   675 (78 %)  1140 (74 %)      191 (78 %)   441 (57 %)   773 (64 %)
// The levers, before prefill's copies had their addresses computed ahead, one process, another GPU,
// us at 8192 tokens (R1 TP8, Qwen3-30B): rows of down one by one to token order instead 1405, 838
// (with tiles 1342, 846); of that, plain launches instead of
// dependent ones 1415, 839, and at 1024 tokens 422 instead of 421, 194.0 instead of 193.7. So
// dependent launches gain 0.2 to 0.7 %. The rest is gate-up: 519 of 1224 us, 1.7 times its floor,
// and of Qwen3-30B 460 of 782, 1.8 times.
#include "kernels/fused_moe/sorted_parts.h"
#include "kernels/moe_sum/launches.h"

namespace moegate::fused_moe {
namespace {

void launch(FusedMoe& problem, const Launch& where) {
  const SortedLayer layer = launch_up_to_codes(problem, where);
  moe_gemm::prefill::launch_sorted_rows(layer.down(), layer.down_cluster(), where);
  moe_sum::launch_at_places(sum(layer.args, layer.buffers), layer.buffers.places, where);
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  if (ExpertRank::of(c).is_whole()) return sorted_unsupported(c, device);
  return "rank = " + c.get("rank") +
         ": the sum finds rows by places, and rows of other ranks have none";
}

KernelSpec<FusedMoe> spec() {
  KernelSpec<FusedMoe> spec = sorted_chain(
      "chain_sorted",
      "silu and quantisation in gate-up, rows in sorted order up to the sum, by prefill", launch);
  spec.unsupported = unsupported;
  return spec;
}

const Kernel<FusedMoe> kernel(spec());

}  // namespace
}  // namespace moegate::fused_moe
