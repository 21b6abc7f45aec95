// SPDX-License-Identifier: Apache-2.0
// The fp8 grouped GEMMs for many rows per expert: tiles of a block of 64 or 128 routed rows times
// 256 columns. At that size what bounds smaller tiles is not the tensor cores but the path from L2
// to the SMs (R1 gate-up, 8192 tokens, 128 x 128 tiles: L2 at 82 % of its peak, tensor cores at
// half of theirs): a 128 x 256 tile takes 48 KB per 128 of K where two of 128 x 128 take 64.
//
// A warpgroup copies (TMA for weights, asynchronous copies gather the rows), two multiply 64 rows
// by 128 columns at a time. The accumulators go to fp32 sums, times both scale factors, while the
// other warpgroup's product runs; the two take turns. Rows are the M of wgmma here: a thread's 64
// accumulators then have two rows, so two scale factors in place of 32. A warpgroup whose rows are
// all padding only passes its turns.
//
// On an H200, cold (reports/gallery/nvidia-h200-fp8-moe.md), us at T = 2048 and 8192, and below it
// the public Triton kernel, tuned:
//   R1 TP8 gate-up 268 673, Qwen3-30B gate-up 173 504, down 98 300
//   Triton         306 816                    223 711      154 496
// The products are QGMMA.64x128x32. R1 gate-up at T = 8192 runs into the power limit: the clock falls
// to 1.47 GHz. A lone launch takes 546 us at 1.65 GHz: L2 at 80 % of its peak, DRAM at 62 %
// (3.0 TB/s), a warpgroup a third of its time at the tensor cores. A kernel with fewer cycles is
// faster under the same limit: prefill, but for a long K with more than two columns of tiles.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/fp8/token_sums.h"
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/tiles/tile.h"
#include "kernels/moe_gemm/wide_tiles/kernel.cuh"

namespace moegate::moe_gemm::wide_tiles {
namespace {

using namespace cuda;

template <int Tokens, fp8::Output kOutput>
void launch_tokens(const MoeGemmArgs& args, const Launch& where) {
  constexpr size_t kBytes = kSharedBytes<Shared<Tokens>>;
  const auto kernel = wide_tiles_kernel<Tokens, kOutput>;
  allow_shared(kernel, kBytes);
  const int64_t blocks = (args.shape.capacity() + args.shape.block - 1) / args.shape.block;
  const int64_t tiles = blocks * ((args.shape.n + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, where.device.processors));
  kernel<<<grid, kThreads, kBytes, stream_of(where)>>>(fp8::weights_map(args, kColumns), args);
  check_launch("wide_tiles_kernel");
}

template <fp8::Output kOutput>
void launch_output(const MoeGemmArgs& args, void*, const Launch& where) {
  with_rows<64, 128>(args.shape.block,
                     [&]<int Tokens>() { launch_tokens<Tokens, kOutput>(args, where); });
}

std::string unsupported(const MoeGemmShape& s) {
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.block < 64) return fmt::format("block = {} is not 64 or 128", s.block);
  return tiles::tile_unsupported(s);
}

const tiles::PlainKernel<Backend::cuda, launch_output<fp8::Output::rows>, unsupported> kernel(
    "wide_tiles", "wgmma on tiles of 256 columns, for many rows per expert");

}  // namespace
}  // namespace moegate::moe_gemm::wide_tiles

namespace moegate::moe_gemm {

void fp8::launch_wide_token_sums(const MoeGemmArgs& args, const Launch& where) {
  wide_tiles::launch_output<fp8::Output::token_sums>(args, nullptr, where);
}
std::string fp8::wide_tiles_unsupported(const MoeGemmShape& shape) {
  return wide_tiles::unsupported(shape);
}

}  // namespace moegate::moe_gemm
