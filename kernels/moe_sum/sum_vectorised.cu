// SPDX-License-Identifier: Apache-2.0
// moe_sum with a thread per token and eight columns: 16-byte loads of up to eight rows under way at
// once, so one round trip to memory for k <= 8, and blocks over columns, too, so that one token has
// work for several SMs. Where that makes too few blocks to fill the GPU (decode), a thread has two
// columns: four times the blocks, each as soon done. The order of additions is that of
// sum_per_token: their outputs agree bit for bit.
//
// Floor: y once from memory or L2; at decode the launch and one round trip. On an H200, H = 7168, k
// = 8, cold: 1.6 us at T = 1, 2.6 at 32, 28.7 at 1024 (sum_per_token: 7.0, 41.6 at the last two),
// which reads 4.1 TB/s. Two columns a thread: 1.10x at T = 1 to 4, 1.03x at 8, equal from 16 on; k
// = 9: 1.17x at 1, 1.05x at 32 (2026-11-23, commit 2f0f7b8; reports/gallery/nvidia-h200-why.md).
#include "kernels/moe_sum/columns.cuh"

namespace moegate::moe_sum {
namespace {

using namespace cuda;

template <int columns>
__global__ void __launch_bounds__(kThreads)
    sum_vectorised_kernel(const __grid_constant__ MoeSumArgs args, int chunks) {
  sum_columns<columns, InOrder>(args, chunks);
}

}  // namespace

void launch_vectorised(const MoeSumArgs& args, const Launch& where) {
  with_columns(args, where, [&]<int columns>(int chunks, unsigned blocks) {
    sum_vectorised_kernel<columns><<<blocks, kThreads, 0, stream_of(where)>>>(args, chunks);
    check_launch("sum_vectorised_kernel");
  });
}

namespace {

std::string unsupported(const Case& c, const DeviceFacts&) {
  const int hidden = MoeSumShape::of(c).hidden;
  return hidden % 8 == 0 ? "" : fmt::format("H = {} is not a multiple of 8", hidden);
}

const Kernel<MoeSum> kernel({
    .name = "sum_vectorised",
    .backend = Backend::cuda,
    .help = "a thread per token and 8 columns, all k rows under way at once",
    .launch = [](MoeSum& problem,
                 const Launch& where) { launch_vectorised(problem.args(), where); },
    .unsupported = unsupported,
});

}  // namespace
}  // namespace moegate::moe_sum
