// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// The grouped GEMMs for many rows per expert: tiles of a block of 64 or 128 routed rows times 256
// columns. At that size what bounds smaller tiles is not the tensor cores but the path from L2 to
// the SMs (R1 gate-up, 8192 tokens, 128 x 128 tiles: L2 at 82 % of its peak, tensor cores at half
// of theirs): a 128 x 256 tile takes 48 KB per slice of K where two of 128 x 128 take 64.
//
// A warpgroup copies (TMA for weights, asynchronous copies gather the rows), two multiply 64 rows.
// Rows are the M of wgmma here: a thread's 64 accumulators then have two rows, so two scale factors
// in place of 32. A warpgroup whose rows are all padding only passes.
//
// fp8: 128 columns at a time. The accumulators go to fp32 sums, times both scale factors, while the
// other warpgroup's product runs; the two take turns. On an H200, cold
// (reports/gallery/nvidia-h200-fp8-moe.md), us at T = 2048 and 8192, and below it the public Triton
// kernel, tuned:
//   R1 TP8 gate-up 268 673, Qwen3-30B gate-up 173 504, down 98 300
//   Triton         306 816                    223 711      154 496
// The products are QGMMA.64x128x32. R1 gate-up at T = 8192 runs into the power limit: the clock
// falls to 1.47 GHz. A lone launch takes 546 us at 1.65 GHz: L2 at 80 % of its peak, DRAM at 62 %
// (3.0 TB/s), a warpgroup a third of its time at the tensor cores. A kernel with fewer cycles is
// faster under the same limit: prefill.
//
// bf16: all columns in one product, sums in the accumulators, no turns. Where most experts have two
// blocks of rows, clusters of two share the weights of such a pair by TMA multicast. gpt-oss-120b
// (E 128, top-4, 2880 x 2880), blocks of 128, one process, on two H200s, 2026-11-23, us at T = 2048
// and 8192, and below it a Triton kernel of the public one's structure, the best of one or two
// tiles (128 x 256 at 8192), and gather:
//   gate-up 1060 2146-2161, down 535 1144-1171
//   Triton  1193 2282-2290       597 1186-1267
//   gather  1564 3950            698 2033
// T = 2048 is the memory's: 4 TB/s of weights alone. The floor at 8192 is that of the products, at
// 790 TFLOP/s 1376 and 688. Without pairs gate-up took 2651, with pairs of neighbours in the whole
// list, of which 60 % have one expert in place of 80, 2247; a lone launch of those 2030 at 1.53
// GHz: L2 at 90 % of its peak, tensor cores 76 % busy, 5.9 GB from DRAM where 4.3 would do.
// Repeated, it is bound by power, too: 1.48 GHz. An expert's third block has about 13 rows of 128.
// At 2048, where few experts have two blocks, pairs lose (1150).
#include <algorithm>

#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/fp8/token_sums.h"
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/tiles/tile.h"
#include "kernels/moe_gemm/wide_tiles/kernel.cuh"

namespace moegate::moe_gemm::wide_tiles {
namespace {

using namespace cuda;

template <class C, fp8::Output kOutput>
void launch_config(const MoeGemmArgs& args, const Launch& where) {
  constexpr size_t kBytes = kSharedBytes<Shared<C>>;
  const auto kernel = wide_tiles_kernel<C, kOutput>;
  const int64_t blocks = (args.shape.capacity() + args.shape.block - 1) / args.shape.block;
  const int64_t tiles =
      (blocks + C::kCluster - 1) / C::kCluster * ((args.shape.n + C::kColumns - 1) / C::kColumns);
  const int resident = C::kCluster == 1
                           ? where.device.processors
                           : resident_clusters(kernel, C::kCluster, kThreads, kBytes, where.device);
  ClusterLaunch launch(kernel, static_cast<int>(std::min<int64_t>(tiles, resident)), C::kCluster,
                       kThreads, kBytes, where.stream);
  check_cuda(cudaLaunchKernelEx(&launch.config, kernel,
                                fp8::weights_map(args, C::kColumns / C::kCluster), args),
             "wide_tiles_kernel");
}

template <fp8::Output kOutput>
void launch_fp8(const MoeGemmArgs& args, const Launch& where) {
  with_rows<64, 128>(args.shape.block, [&]<int Tokens>() {
    launch_config<Config<DType::e4m3, Tokens, 256, 1>, kOutput>(args, where);
  });
}

/// Whether clusters of two pay: most experts have a pair of blocks.
bool in_pairs(const MoeGemmShape& s) {
  return !s.scaled() && s.block == 128 && s.rows() > s.experts * s.block;
}

void launch_bf16(const MoeGemmArgs& args, const Launch& where) {
  constexpr fp8::Output kOutput = fp8::Output::rows;
  if (args.shape.block == 64) {
    launch_config<Config<DType::bf16, 64, 256, 1>, kOutput>(args, where);
  } else if (in_pairs(args.shape)) {
    launch_config<Config<DType::bf16, 128, 256, 2>, kOutput>(args, where);
  } else {
    launch_config<Config<DType::bf16, 128, 256, 1>, kOutput>(args, where);
  }
}

void launch(const MoeGemmArgs& args, void*, const Launch& where) {
  args.shape.scaled() ? launch_fp8<fp8::Output::rows>(args, where) : launch_bf16(args, where);
}

std::string unsupported(const MoeGemmShape& s) {
  if (s.block < 64) return fmt::format("block = {} is not 64 or 128", s.block);
  if (s.row_bytes() % 16 != 0) return fmt::format("K = {} is not a multiple of 8", s.k);
  return tiles::tile_unsupported(s);
}

std::string path(const Case& c, const DeviceFacts&) {
  const bool down = c.op == MoeDown::kOp;
  return in_pairs(down ? MoeDown::shape_of(c) : MoeGateUp::shape_of(c)) ? "pairs of blocks" : "";
}

const tiles::PlainKernel<Backend::cuda, launch, unsupported, nullptr, path> kernel(
    "wide_tiles", "wgmma on tiles of 256 columns, for many rows per expert");

}  // namespace
}  // namespace moegate::moe_gemm::wide_tiles

namespace moegate::moe_gemm {

void fp8::launch_wide_token_sums(const MoeGemmArgs& args, const Launch& where) {
  wide_tiles::launch_fp8<fp8::Output::token_sums>(args, where);
}
std::string fp8::wide_tiles_unsupported(const MoeGemmShape& shape) {
  if (!shape.scaled()) return "multiplies fp8 only";
  return wide_tiles::unsupported(shape);
}

}  // namespace moegate::moe_gemm
