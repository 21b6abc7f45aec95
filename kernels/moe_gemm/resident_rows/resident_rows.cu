// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// The fp8 grouped GEMMs where K is short (down): a block of routed rows stays in shared memory with
// all of its K while the expert's weights stream past it, 64 rows of them the M of wgmma, the rows
// its N. Rows are gathered once for many tiles, and two warpgroups work on tiles of their own: one
// writes its output while the other multiplies. With K of two groups of 128 (R1 at TP8) writing is
// most of the work.
//
// A thread copies weights by TMA through a ring of stages for each warpgroup (one that skipped the
// other's stages could take an old phase for the awaited one), three warps gather the next rows.
// After each group of 128 along K the sums go from the tensor cores' accumulators to fp32
// registers, times both scale factors and the routing weight.
//
// R1 TP8 down on an H200, cold (reports/gallery/nvidia-h200-fp8-moe.md), us for T = 32, 128, 512,
// 2048, and below it the public Triton kernel, tuned:
//    76 118 131 227  (94, 97, 97 and 74 % of the floor)
//   121 154 215 383
// At T = 8192 (642 us) DRAM is at 60 % of its peak; wide_tiles takes 618. With K = 768 its 64
// columns per product are too few: wide_tiles is faster from T = 512.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/fp8/token_sums.h"
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/resident_rows/kernel.cuh"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::resident_rows {
namespace {

using namespace cuda;

template <int Tokens>
Plan plan_for(const MoeGemmShape& s, const DeviceFacts& device) {
  // Of an SM, less what the system takes of each block.
  constexpr int64_t kReserved = 1024;
  const int64_t available =
      (device.shared_per_block + kReserved) / Config<Tokens>::kBlocksPerSm - kReserved;
  const int64_t rest = available - 1024 - static_cast<int64_t>(sizeof(Shared<Tokens>));
  const int64_t row_bytes = int64_t{s.k_groups()} * Tokens * kMoeGroup;
  const int buffers = rest - 2 * row_bytes >= 2 * 2 * kStageBytes ? 2 : 1;
  const auto stages = static_cast<int>(
      std::min<int64_t>((rest - buffers * row_bytes) / (2 * kStageBytes), kMaxStages));
  return {.groups = s.k_groups(),
          .buffers = buffers,
          .stages = stages,
          .shared_bytes = static_cast<int>(1024 + buffers * row_bytes + stages * 2 * kStageBytes +
                                           static_cast<int64_t>(sizeof(Shared<Tokens>)))};
}

template <int Tokens, fp8::Output kOutput>
void launch_tokens(const MoeGemmArgs& args, const Launch& where) {
  const Work work{args, plan_for<Tokens>(args.shape, where.device)};
  const auto kernel = resident_rows_kernel<Tokens, kOutput>;
  allow_shared(kernel, work.plan.shared_bytes);
  const int64_t tiles = (args.shape.capacity() + args.shape.block - 1) / args.shape.block *
                        ((args.shape.n + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(
      std::min<int64_t>(tiles, where.device.processors * Config<Tokens>::kBlocksPerSm));
  launch_early_if(args.shape.early, kernel, grid, kThreads, work.plan.shared_bytes, where.stream,
                  fp8::weights_map(args, kColumns), work);
}

template <fp8::Output kOutput>
void launch_output(const MoeGemmArgs& args, void*, const Launch& where) {
  with_rows<16, 32, 64, 128>(args.shape.block,
                             [&]<int Tokens>() { launch_tokens<Tokens, kOutput>(args, where); });
}

std::string unsupported(const MoeGemmShape& s) {
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.k_groups() > kMaxGroups) {
    return fmt::format("K = {} is more than {}: the rows would not fit", s.k,
                       kMaxGroups * kMoeGroup);
  }
  return tiles::tile_unsupported(s);
}

const tiles::PlainKernel<Backend::cuda, launch_output<fp8::Output::rows>, unsupported> kernel(
    "resident_rows", "wgmma on routed rows that stay in shared memory while weights stream by TMA");

}  // namespace
}  // namespace moegate::moe_gemm::resident_rows

namespace moegate::moe_gemm {

void fp8::launch_resident_token_sums(const MoeGemmArgs& args, const Launch& where) {
  resident_rows::launch_output<fp8::Output::token_sums>(args, nullptr, where);
}
std::string fp8::resident_rows_unsupported(const MoeGemmShape& shape) {
  return resident_rows::unsupported(shape);
}

}  // namespace moegate::moe_gemm
